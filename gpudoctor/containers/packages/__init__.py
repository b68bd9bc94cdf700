"""Python inside images: which packages are there, which the project asks for, and which copy a command imports."""
