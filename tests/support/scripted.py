"""A server in place of DynamoDB's endpoint, whose answers are said beforehand."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support import http_stand_in
from tests.support.http_stand_in import Answer, Asked

DROPPED = (0, "")
REQUEST_ID = "REQUEST"


@dataclass
class Scripted:
    """What the server answers, and what it was asked."""

    address: str = ""
    # A status and an error's code for each request to come, in turn; then every query finds nothing.
    script: list[tuple[int, str]] = field(default_factory=list)
    always: tuple[int, str] | None = None
    requests: list[str] = field(default_factory=list)
    # What an error says beside its code.
    details: dict[str, Any] = field(default_factory=lambda: {"message": "as scripted"})

    def answer(self, asked: Asked) -> Answer:
        """Note a request, and say how to answer it."""
        self.requests.append(asked.headers["X-Amz-Target"].partition(".")[2])
        status, code = self.always or (self.script.pop(0) if self.script else (200, ""))
        if (status, code) == DROPPED:
            return http_stand_in.DROPPED
        error = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **self.details}
        body = json.dumps({"Items": [], "Count": 0} if status == 200 else error).encode()
        headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": REQUEST_ID}
        return Answer(status, body, headers)


@contextlib.contextmanager
def scripted_server() -> Iterator[Scripted]:
    """Run such a server."""
    scripted = Scripted()
    with http_stand_in.http_stand_in(otherwise=scripted.answer) as stand_in:
        scripted.address = stand_in.address
        yield scripted
