"""What an image contains and how it was built: its files, layers and history, read without running anything."""
