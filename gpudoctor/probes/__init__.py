"""The probes: questions to a host, and the parsers that turn its answers into the sections of a snapshot."""
