"""The engine that holds images and containers: how it is reached, and what it knows of a project."""
