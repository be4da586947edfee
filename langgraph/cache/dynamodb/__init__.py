"""LangGraph's node cache on one DynamoDB table."""

from __future__ import annotations

from .node_cache import DynamoDBCache

__all__ = ["DynamoDBCache"]
