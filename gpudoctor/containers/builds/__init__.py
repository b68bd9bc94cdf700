"""What a build of the project would do: its Dockerfile and context read as the builders read them, without building."""
