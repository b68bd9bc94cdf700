"""The checks, one file each. Add a file, and it is found; nothing else is edited."""
