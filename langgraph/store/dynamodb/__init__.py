"""A LangGraph store on one DynamoDB table: memory across threads."""

from langgraph.checkpoint.dynamodb._format.labels import label_of
from langgraph.checkpoint.dynamodb.errors import SearchLimitError

from .reads import FoundItem, FoundItems, MemoryItem
from .resources import Vector, VectorEngine
from .similarity import StoreIndexConfig
from .store import DynamoDBStore

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
