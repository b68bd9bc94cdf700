"""The probes: questions to a host, and the parsers that turn its answers into the sections of a snapshot."""

from gpudoctor.probes.snapshot import begin_snapshot, take_snapshot

__all__ = ["begin_snapshot", "take_snapshot"]
