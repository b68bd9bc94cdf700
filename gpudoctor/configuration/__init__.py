"""What a user asks for: the files of a project, options and requirements."""
