"""A LangGraph store on one DynamoDB table: memory across threads."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format.labels import label_of
from langgraph.checkpoint.dynamodb.errors import SearchLimitError
from langgraph.store.dynamodb.index import StoreIndexConfig
from langgraph.store.dynamodb.reads import FoundItem, FoundItems, MemoryItem
from langgraph.store.dynamodb.store import DynamoDBStore
from langgraph.store.dynamodb.vector_engine import Vector, VectorEngine

__all__ = [
    "DynamoDBStore",
    "FoundItem",
    "FoundItems",
    "MemoryItem",
    "SearchLimitError",
    "StoreIndexConfig",
    "Vector",
    "VectorEngine",
    "label_of",
]
