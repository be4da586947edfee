"""The gateway on AWS Lambda: `handler` serves events of an HTTP API.

The environment configures it, as it does the command. Mangum turns an event into a request, and the application's
response into one of Lambda; bodies that are not text travel as base64. What an event says of its sender is not
believed: the application verifies the request's token.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import Any

import boto3
from mangum import Mangum
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .._format.wire import REQUEST_ID_HEADER
from .access_log import problem_response
from .problems import MEDIA_TYPE, ProblemError
from .settings import configured_gateway

# Of 6 MB for a response, in base64 and beside headers.
_RESPONSE_BYTES_MAX = 4_600_000

# Lambda imports this module once per execution environment, and calls the handler for one event after another. The
# saver's connections belong to this loop, so they are used again.
asyncio.set_event_loop(asyncio.new_event_loop())


def _read_audit_key() -> None:
    """Read the secret that the template names. In a variable of the function, whoever may list functions could."""
    arn = os.environ.get("AUDIT_KEY_SECRET_ARN")
    if arn is not None:
        secret = boto3.client("secretsmanager").get_secret_value(SecretId=arn)
        os.environ["LANGGRAPH_GATEWAY_AUDIT_KEY"] = secret["SecretString"]


_read_audit_key()
application = configured_gateway()


@dataclass(frozen=True)
class Bounded:
    """Answers with a problem where AWS would drop the response, which a client would take for a passing failure."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an event."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, collect)
        size = sum(len(each.get("body", b"")) for each in messages)
        if size <= _RESPONSE_BYTES_MAX:
            for each in messages:
                await send(each)
            return
        record = scope["state"]["record"]
        problem = ProblemError(
            422,
            f"the response has {size:,} bytes, and through Lambda {_RESPONSE_BYTES_MAX:,} are possible; ask for less at"
            " a time, or run the gateway on ECS",
            headers={REQUEST_ID_HEADER: record.request_id},
        )
        await problem_response(record, problem)(scope, receive, send)


# With a lifespan, Mangum would end the application after each event, which closes the saver.
_serve = Mangum(Bounded(application), lifespan="off", text_mime_types=["application/json", MEDIA_TYPE])


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve one request, which API Gateway describes in payload format 2.0."""
    return _serve(event, context)
