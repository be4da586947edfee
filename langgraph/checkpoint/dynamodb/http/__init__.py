"""The checkpointer of an agent without AWS access: it speaks HTTP to the gateway, which owns the table.

A room above the saver that loads neither boto3 nor anything else of AWS, and httpx only when the first request is made.
"""

from langgraph.checkpoint.dynamodb.http.saver import HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.http.signing import SigV4

__all__ = ["HttpCheckpointSaver", "SigV4"]
