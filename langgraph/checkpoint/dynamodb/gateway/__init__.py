"""The service for agents without AWS access: it owns the table, and runs the saver's operations for them.

A room above the saver, with the extra `gateway`. The client serializes, cuts and seals; the service owns keys, write
order, epochs, expiry and recovery. It never opens what it stores, except in `plain`, which is off by default. `wire` is
what travels, `endpoints` what there is, `operations` what is done; everything else is about who asks, how much, and
what they are answered.
"""

from langgraph.checkpoint.dynamodb.gateway.app import create_gateway
from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.settings import configured_gateway

__all__ = ["Authenticate", "Limits", "Principal", "configured_gateway", "create_gateway"]
