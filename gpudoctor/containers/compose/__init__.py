"""Compose projects: their files read as Compose reads them, without running it where that can be told."""
