"""Compose projects: their files read as Compose reads them, without running it if that can be determined."""
