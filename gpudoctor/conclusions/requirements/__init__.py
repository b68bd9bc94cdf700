"""Requirements, judged by the facts of a machine."""
