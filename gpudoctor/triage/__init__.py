"""Next steps and possible causes if nothing was found and nothing proves that the GPU works."""
