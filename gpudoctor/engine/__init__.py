"""Running checks: their catalog, selection, runner and diagnosis."""
