"""What the user asks of a machine (`--require`): read from text, judged on a snapshot."""
