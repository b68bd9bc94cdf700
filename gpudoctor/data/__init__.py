"""What is known about drivers, devices, builds and packages: tables with their sources, and lookups.

A lookup returns None if the table does not know, never a guess; what is newer than the table is not known.
"""
