"""The gateway on AWS Lambda: `handler` serves events of a function URL, of an HTTP API, or of a load balancer.

The environment configures it, as it does the command. Mangum turns an event into a request, and the application's
answer into a response; bodies that are not text travel as base64. Only the service that authenticates callers may
invoke the function, since the caller's identity is in the event (see `authentication`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from mangum import Mangum

from langgraph.checkpoint.dynamodb.gateway.problems import MEDIA_TYPE
from langgraph.checkpoint.dynamodb.gateway.settings import configured_gateway

# Lambda imports this module once per execution environment, and calls the handler for one event after another. The
# saver's connections belong to this loop, so they are used again.
asyncio.set_event_loop(asyncio.new_event_loop())

application = configured_gateway()
# With a lifespan, Mangum would end the application after each event, which closes the saver.
_serve = Mangum(application, lifespan="off", text_mime_types=["application/json", MEDIA_TYPE])


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve one request.

    Args:
        event: The request as AWS describes it: payload format 2.0, or a load balancer's.
        context: Lambda's context.

    Returns:
        The answer in the form that AWS expects.
    """
    return _serve(event, context)
