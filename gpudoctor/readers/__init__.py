"""Pasted texts of other machines: a file for each kind of text, text in and facts out."""
