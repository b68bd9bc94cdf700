"""Snapshots as files: saved, compared and recorded."""
