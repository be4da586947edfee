"""LangGraph's node cache on one DynamoDB table."""

from .node_cache import DynamoDBCache

__all__ = ["DynamoDBCache"]
