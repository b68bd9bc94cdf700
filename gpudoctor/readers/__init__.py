"""Readers turn pasted text from other machines into facts: one file for each kind of text."""
