"""The raw client: what a saver sent is recorded by botocore's events, and sent again without the saver.

Requests that overlapped in time belong to one round. A round's requests are sent again side by side, and
rounds one after the other, so the raw client waits for the network as often as the saver had to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from aiobotocore.session import AioSession, get_session
from botocore import xform_name

from benchmarks.contestants import session_of
from langgraph.checkpoint.dynamodb._format.limits import PARALLEL_REQUESTS
from langgraph.checkpoint.dynamodb._runtime.clients import default_config

if TYPE_CHECKING:
    import boto3
    from botocore.model import OperationModel
    from mypy_boto3_dynamodb import DynamoDBClient

    from benchmarks.contestants import Contestant
    from tools.engine import Engine


@dataclass
class Request:
    """One request: the client's method, its arguments, and when it was under way."""

    method: str
    params: dict[str, Any]
    started: float
    ended: float = float("inf")


Round: TypeAlias = Sequence[Request]


class Recorder:
    """What the clients of a session send."""

    def __init__(self, session: boto3.Session) -> None:
        """Listen to every DynamoDB client that the session makes from now on."""
        self._requests: list[Request] = []
        session.events.register("provide-client-params.dynamodb", self._began)
        session.events.register("after-call.dynamodb", self._ended)

    def take(self) -> Sequence[Round]:
        """Return the rounds since the last time."""
        requests, self._requests = self._requests, []
        return rounds_of(requests)

    def _began(
        self, params: dict[str, Any], model: OperationModel, context: dict[str, Any], **_: object
    ) -> None:
        request = Request(xform_name(model.name), dict(params), time.perf_counter())
        context["request"] = request
        self._requests.append(request)

    @staticmethod
    def _ended(context: dict[str, Any], **_: object) -> None:
        context["request"].ended = time.perf_counter()


def rounds_of(requests: Sequence[Request]) -> Sequence[Round]:
    """Group requests by whether they overlap in time."""
    rounds: list[list[Request]] = []
    until = float("-inf")
    for request in sorted(requests, key=lambda each: each.started):
        if request.started >= until:
            rounds.append([])
        rounds[-1].append(request)
        until = max(until, request.ended)
    return rounds


def aimed_at(rounds: Sequence[Round], table_name: str) -> list[Round]:
    """Return the same rounds for another table."""
    return [
        [Request(each.method, _aimed(each.params, table_name), 0) for each in round_] for round_ in rounds
    ]


def _aimed(params: dict[str, Any], table_name: str) -> dict[str, Any]:
    if "TableName" in params:
        return {**params, "TableName": table_name}
    [content] = params["RequestItems"].values()
    return {**params, "RequestItems": {table_name: content}}


class RawClient:
    """A boto3 client as the saver would make it, and as many threads for the requests of a round."""

    def __init__(self, engine: Engine) -> None:
        """Open the client, with the hooks that the saver's has, so that both pay for them."""
        session = session_of(engine)
        Recorder(session)
        self._client: Any = session.client(
            "dynamodb", endpoint_url=engine.endpoint_url, config=default_config()
        )
        self._pool = ThreadPoolExecutor(PARALLEL_REQUESTS)

    def send(self, rounds: Sequence[Round]) -> None:
        """Send recorded rounds again."""
        for round_ in rounds:
            if len(round_) == 1:
                self._send(round_[0])
            else:
                list(self._pool.map(self._send, round_))

    def sends(self, rounds: Sequence[Round], table_name: str) -> Callable[[], None]:
        """Return a call that sends the rounds to another table, and does nothing else."""
        return partial(self.send, aimed_at(rounds, table_name))

    def _send(self, request: Request) -> None:
        getattr(self._client, request.method)(**request.params)

    def close(self) -> None:
        """Close the client."""
        self._pool.shutdown()
        self._client.close()


def async_session_of(engine: Engine) -> AioSession:
    """Return a session of aiobotocore with the credentials of an engine."""
    session = get_session()
    session.set_credentials(engine.access_key_id, engine.secret_access_key)
    return session


@contextmanager
def new_table(engine: Engine, contestant: Contestant) -> Iterator[str]:
    """Make an empty table for a contestant, and yield its name."""
    client: DynamoDBClient = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
    name = f"bench-{uuid4().hex}"
    client.create_table(**{**contestant.schema, "TableName": name})
    try:
        yield name
    finally:
        client.delete_table(TableName=name)
