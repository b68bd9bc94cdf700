"""Fixtures of which every session has one, whatever number of modules use them."""

from __future__ import annotations

from tests.containers.debian import debian_image, shelf, shelf_of_session

__all__ = ["debian_image", "shelf", "shelf_of_session"]
