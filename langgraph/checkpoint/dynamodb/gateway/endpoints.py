"""The endpoint table: each operation's name, its request, the right that it needs and the threads that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from langgraph.checkpoint.dynamodb.gateway import answers, table_wire, wire

Right: TypeAlias = Literal["read", "write", "administer"]


def _thread(request: Any) -> Iterable[str | None]:
    return (request.thread_id,)


def _source_and_target(request: wire.CopyThread) -> Iterable[str | None]:
    return (request.source_thread_id, request.target_thread_id)


def _threads(request: Any) -> Iterable[str | None]:
    thread_ids: Iterable[str | None] = request.thread_ids
    return thread_ids


def _all(_request: Any) -> Iterable[str | None]:
    return (None,)


def _none(_request: Any) -> Iterable[str | None]:
    return ()


# The saver's methods that have another name than their endpoint.
_METHODS = {
    "delta-channel-history": "get_delta_channel_history",
    "runs": "list_runs",
    "threads": "list_threads",
}


@dataclass(frozen=True)
class Endpoint:
    """One operation as `POST /checkpoints/{name}`."""

    name: str
    model: type[wire.Message]
    answer: type[BaseModel]
    """The answer's model; for a stream, that of one document."""
    right: Right
    threads: Callable[[Any], Iterable[str | None]] = _thread
    """Returns every thread that a request names. None stands for all threads."""
    absent: Mapping[str, Any] | None = None
    """The answer of an endpoint that creates no thread, where its thread does not exist. None: an error."""
    is_joined: bool = False
    """Whether it may take longer than one request, and a repeated request joins it."""

    @property
    def attribute(self) -> str:
        """The name of the method of `Operations` that serves it."""
        return self.name.replace("-", "_")

    @property
    def method(self) -> str:
        """The name of the saver's method, for events."""
        return _METHODS.get(self.name, self.attribute)


ENDPOINTS = (
    Endpoint("get-tuple", wire.GetTuple, answers.GetTupleAnswer, "read", absent={"checkpoint": None}),
    Endpoint("list", wire.List, answers.ListDocument, "read", absent={"end": True, "more": False}),
    Endpoint(
        "delta-channel-history",
        wire.DeltaChannelHistory,
        answers.DeltaChannelHistoryAnswer,
        "read",
        absent={"channels": {}},
    ),
    Endpoint("put", wire.Put, answers.PutAnswer, "write"),
    Endpoint("put-writes", wire.PutWrites, answers.Done, "write"),
    Endpoint("delete-thread", wire.DeleteThread, answers.Done, "administer", absent={}),
    Endpoint("delete-for-runs", wire.DeleteForRuns, answers.Done, "administer", _all),
    Endpoint(
        "copy-thread", wire.CopyThread, answers.Joined, "administer", _source_and_target, is_joined=True
    ),
    Endpoint(
        "prune", wire.Prune, answers.Joined, "administer", _threads, absent={"done": True}, is_joined=True
    ),
    Endpoint("set-thread", wire.SetThread, answers.Done, "write"),
    Endpoint("threads", wire.Threads, answers.ThreadsAnswer, "read", _none),
    Endpoint("runs", wire.Runs, answers.RunsAnswer, "read", absent={"runs": []}),
)
TABLE_ENDPOINTS = (
    Endpoint("get-item", table_wire.GetItem, table_wire.TableAnswer, "read", _none),
    Endpoint("batch-get-item", table_wire.BatchGetItem, table_wire.BatchGetItemAnswer, "read", _none),
    Endpoint("query", table_wire.Query, table_wire.TableAnswer, "read", _none),
    Endpoint("put-item", table_wire.PutItem, table_wire.TableAnswer, "write", _none),
    Endpoint("update-item", table_wire.UpdateItem, table_wire.TableAnswer, "write", _none),
    Endpoint("delete-item", table_wire.DeleteItem, table_wire.TableAnswer, "write", _none),
    Endpoint("batch-write-item", table_wire.BatchWriteItem, table_wire.BatchWriteItemAnswer, "write", _none),
)
