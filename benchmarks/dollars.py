"""US dollars for requests and for what is stored, on demand in us-east-1, by the prices of `_format/pricing.py`."""

from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS

CONVERSATIONS = 1_000
STORED_GB_MONTH_DOLLARS = 0.25
GB_BYTES = 2**30
# The bytes that DynamoDB adds to each item when it bills storage.
ITEM_OVERHEAD_BYTES = 100


def request_dollars(write_units: float, read_units: float) -> float:
    """Return the cost of requests, by their units."""
    return write_units * WRITE_UNIT_DOLLARS + read_units * READ_UNIT_DOLLARS


def stored_dollars(size_bytes: float, item_count: int) -> float:
    """Return the cost of storing items for a month."""
    return (size_bytes + item_count * ITEM_OVERHEAD_BYTES) / GB_BYTES * STORED_GB_MONTH_DOLLARS
