"""The error of the store alone. It raises those of the saver as well."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb.errors import CheckpointerError


class SearchLimitError(CheckpointerError):
    """One search of the store would read more than its `search_bytes_max`."""
