"""The fixes that several checks give, built from the tables.

A remedy's commands change the installation for certain, with the interpreter and tool of the environment diagnosed,
and the last one verifies. If no command can help, there is none and the summary says what would.
"""
