"""LangGraph's node cache on one DynamoDB table."""

from __future__ import annotations

from langgraph.cache.dynamodb.cache import DynamoDBCache

__all__ = ["DynamoDBCache"]
