"""What to ask next if nothing was found and nothing proves that the GPU works."""
