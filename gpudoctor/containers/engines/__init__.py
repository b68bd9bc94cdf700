"""The engine that has the images and containers: how it is reached, and what it knows about a project.

The types of the package docker are named here for annotations: it is imported only if an engine is asked.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["APIClient", "DockerClient"]

if TYPE_CHECKING:
    from docker import APIClient, DockerClient
else:
    APIClient = DockerClient = Any
