"""DynamoDB's pricing: bytes of items, capacity units and US dollars.

Dollars are those of on-demand capacity in us-east-1, standard table class, as AWS published them in 2025 on "Pricing
for on-demand capacity" of its DynamoDB pages. Prices change and differ by region; only the units are certain.
"""

from collections.abc import Iterable

from .items import Item

WRITE_UNIT_BYTES = 1024
WRITE_UNIT_DOLLARS = 0.625 / 1e6
READ_UNIT_DOLLARS = 0.125 / 1e6

_READ_UNIT_BYTES = 4096


def item_bytes(item: Item) -> int:
    """Return an item's size as DynamoDB counts it ("DynamoDB item sizes and formats" in the developer guide)."""
    return sum(
        len(name.encode()) + sum(_value_bytes(kind, content) for kind, content in value.items())
        for name, value in item.items()
    )


def _value_bytes(kind: str, content: object) -> int:
    if isinstance(content, str) and kind == "N":
        # Two digits share a byte. There is one more byte for the exponent, and one for a sign.
        digits = content.lstrip("-").replace(".", "").strip("0")
        return 1 + (len(digits) + 1) // 2 + content.startswith("-")
    if isinstance(content, str):
        return len(content.encode())
    if isinstance(content, Iterable) and kind == "BS":
        return sum(len(bytes(each)) for each in content)
    return len(content) if isinstance(content, (bytes, bytearray)) else 1


def write_units(size_bytes: int) -> int:
    """Return the write units of one item."""
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, consistent: bool = False) -> float:
    """Return the read units of one request, whose items are counted together in a query or a scan."""
    return max(1, -(-size_bytes // _READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)
