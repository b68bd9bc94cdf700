"""Requirements judged on the facts of a machine."""
