"""Apply a fix to the diagnosed Python environment: the plan, the refusals, the transaction, and the way back."""
