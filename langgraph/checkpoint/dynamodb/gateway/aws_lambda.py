"""The gateway on AWS Lambda: `handler` takes events of a function URL, of an HTTP API, or of a load balancer.

The environment configures it, as it does the command. Mangum makes a request of an event, and an answer of what the
application sends: bodies that are no text travel as base64. Nobody but what authenticates callers may invoke the
function, since who they are stands in the event (see `events`).
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
# It would end with each event, and close the saver, if Mangum told it of its life.
_serve = Mangum(application, lifespan="off", text_mime_types=["application/json", MEDIA_TYPE])


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve one request.

    Args:
        event: What AWS makes of it: payload format 2.0, or a load balancer's.
        context: Lambda's context.

    Returns:
        The answer, as AWS takes it.
    """
    return _serve(event, context)
