"""What several checks conclude in the same way from the facts."""
