"""The checkpointer for agents without AWS access: it speaks HTTP to the gateway, which owns the table.

A layer above the saver. It loads neither boto3 nor any other AWS library, and httpx only with the first request.
"""

from langgraph.checkpoint.dynamodb.http.saver import HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.http.signing import SigV4

__all__ = ["HttpCheckpointSaver", "SigV4"]
