"""Run a program, watch the GPU meanwhile, and report at the end what limited it."""
