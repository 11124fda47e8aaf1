# SPDX-License-Identifier: Apache-2.0
"""What other packages add: entry points, each loaded so that a broken one harms no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Plugin", "load_plugins"]


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package, loaded.

    Attributes:
        name: what the entry point refers to, such as `package.module:object`.
        value: the object; None if it could not be loaded.
        error: why it could not be loaded; "" if it was.
    """

    name: str
    value: object = None
    error: str = ""


def load_plugins(group: str) -> Iterator[Plugin]:
    """Load the entry points of a group, one after the other.

    Example:
        >>> list(load_plugins("lagging.nothing"))
        []
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            value = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a library may panic, or call sys.exit
            yield Plugin(point.value, error=f"{type(error).__name__}: {error}")
        else:
            yield Plugin(point.value, value)
