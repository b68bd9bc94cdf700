"""Images compared with the project that they are built from: what a Dockerfile copies, and what of it is in the image.

What asks the engine raises docker.errors.APIError if it refuses. What looks at files of the project raises OSError if
one cannot be read, TooLarge if the context has too many, and ValueError if the source of a COPY is not a pattern.
"""
