"""The one kind of class that holds facts: a frozen, keyword-only dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Describe a decorator to type checkers; at run time there is nothing to do."""
        return lambda decorator: decorator


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass."""
    return dataclass(frozen=True, kw_only=True)(cls)
