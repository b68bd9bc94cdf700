"""Fixes, built from the tables.

A remedy's commands use the interpreter and installer of the diagnosed environment, and the last one verifies the
result. If no command can help, there are no commands and the summary says what would help.
"""
