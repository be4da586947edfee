"""The HTTP service for agents without AWS access. It owns the table and runs the saver's operations for its clients.

A package above the saver, with the extra `gateway`. The client serializes values; the service owns keys, write order,
epochs, expiry and recovery. The service never opens what it stores, except in `plain`, which is off by default.
`wire` has the messages, and `operations` the endpoints of threads. The other modules authenticate
callers, enforce limits, and build responses.
"""

from langgraph.checkpoint.dynamodb.gateway.app import create_gateway
from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate, anybody_on_this_machine
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.settings import configured_gateway

__all__ = [
    "Authenticate",
    "Limits",
    "Principal",
    "anybody_on_this_machine",
    "configured_gateway",
    "create_gateway",
]
