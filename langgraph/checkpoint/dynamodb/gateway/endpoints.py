"""The endpoint table: each operation's name, its request, the right that it needs and the threads that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from langgraph.checkpoint.dynamodb.gateway import answers, wire

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
    is_plain: bool = False
    """Whether it opens stored values. Such an endpoint exists only if the service is configured with `plain_json`."""

    @property
    def attribute(self) -> str:
        """The name of the method of `Operations` that serves it."""
        return self.name.replace("-", "_")


ENDPOINTS = (
    Endpoint(
        "get-tuple",
        wire.GetTuple,
        answers.GetTupleAnswer,
        "read",
        absent={"checkpoint": None, "thread": None},
    ),
    Endpoint(
        "get-segments",
        wire.GetSegments,
        answers.GetSegmentsAnswer,
        "read",
        absent={"segments": [], "left": []},
    ),
    Endpoint("list", wire.List, answers.ListDocument, "read", absent={"cursor": None}),
    Endpoint(
        "delta-channel-history",
        wire.DeltaChannelHistory,
        answers.DeltaChannelHistoryAnswer,
        "read",
        absent={"checkpoints": [], "ended": True},
    ),
    Endpoint(
        "get-plain", wire.GetPlain, answers.GetPlainAnswer, "read", absent={"checkpoint": None}, is_plain=True
    ),
    Endpoint(
        "list-plain",
        wire.ListPlain,
        answers.ListPlainAnswer,
        "read",
        absent={"checkpoints": [], "cursor": None},
        is_plain=True,
    ),
    Endpoint("put", wire.Put, answers.PutAnswer, "write"),
    Endpoint("put-writes", wire.PutWrites, answers.PutWritesAnswer, "write"),
    Endpoint("put-segments", wire.PutSegments, answers.PutSegmentsAnswer, "write"),
    Endpoint("delete-thread", wire.DeleteThread, answers.Done, "administer", absent={}),
    Endpoint("delete-for-runs", wire.DeleteForRuns, answers.Done, "administer", _all),
    Endpoint("copy-thread", wire.CopyThread, answers.CopyThreadAnswer, "administer", _source_and_target),
    Endpoint("prune", wire.Prune, answers.PruneAnswer, "administer", _threads, absent={"left": []}),
    Endpoint("set-thread", wire.SetThread, answers.SetThreadAnswer, "write"),
    Endpoint("threads", wire.Threads, answers.ThreadsAnswer, "read", _none),
    Endpoint(
        "thread-status", wire.ThreadStatus, answers.ThreadStatusAnswer, "read", _threads, {"threads": []}
    ),
    Endpoint("runs", wire.Runs, answers.RunsAnswer, "read", absent={"runs": []}),
    Endpoint("get-item", wire.GetItem, answers.TableAnswer, "read", _none),
    Endpoint("batch-get-item", wire.BatchGetItem, answers.BatchGetItemAnswer, "read", _none),
    Endpoint("query", wire.Query, answers.TableAnswer, "read", _none),
    Endpoint("put-item", wire.PutItem, answers.TableAnswer, "write", _none),
    Endpoint("update-item", wire.UpdateItem, answers.TableAnswer, "write", _none),
    Endpoint("delete-item", wire.DeleteItem, answers.TableAnswer, "write", _none),
    Endpoint("batch-write-item", wire.BatchWriteItem, answers.BatchWriteItemAnswer, "write", _none),
)
