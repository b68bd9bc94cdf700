"""What an image holds and how it came to be: its files, layers and history, read without running anything."""
