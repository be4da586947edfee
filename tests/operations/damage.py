"""Ways to damage an item of the table in memory."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tests.support.harness import Harness

Damage: TypeAlias = Callable[[Any], dict[str, Any]]
"""Returns what attributes of an item change to; one that changes to None is left out."""


def flip(name: str) -> Damage:
    """Flip a bit of an attribute."""

    def flipped(item: Any) -> dict[str, Any]:
        data = bytearray(item[name]["B"])
        data[-1] ^= 0x40
        return {name: {"B": bytes(data)}}

    return flipped


def replace(name: str, value: dict[str, Any] | None) -> Damage:
    """Give an attribute another value, or none."""
    return lambda _: {name: value}


def damage(harness: Harness, sk: str, how: Damage) -> None:
    """Damage the first item of the thread whose sort key begins so."""
    item = next(iter(harness.items(sk).values()))
    harness.change(item, **how(item))
