"""The endpoints: for each operation its name, its request, the right that it needs and the threads that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.dynamodb.gateway import wire

Right: TypeAlias = Literal["read", "write", "administer"]


@dataclass(frozen=True)
class Endpoint:
    """One operation as `POST /checkpoints/{name}`."""

    name: str
    model: type[wire.Message]
    right: Right
    threads: Callable[[Any], Iterable[str | None]]
    """Every thread that a request names; None stands for all threads."""

    @property
    def attribute(self) -> str:
        """The name of the method that serves it."""
        return self.name.replace("-", "_")


def _thread(request: Any) -> Iterable[str | None]:
    return (request.thread_id,)


def _held(request: wire.PutWithWrites) -> Iterable[str | None]:
    return (request.put.thread_id, *(each.thread_id for each in request.writes))


def _source_and_target(request: wire.CopyThread) -> Iterable[str | None]:
    return (request.source_thread_id, request.target_thread_id)


def _listed(request: wire.List) -> Iterable[str | None]:
    return (request.thread_id,)


def _all(_request: Any) -> Iterable[str | None]:
    return (None,)


ENDPOINTS = (
    Endpoint("get-tuple", wire.GetTuple, "read", _thread),
    Endpoint("get-segments", wire.GetSegments, "read", _thread),
    Endpoint("list", wire.List, "read", _listed),
    Endpoint("delta-channel-history", wire.DeltaChannelHistory, "read", _thread),
    Endpoint("put", wire.Put, "write", _thread),
    Endpoint("put-writes", wire.PutWrites, "write", _thread),
    Endpoint("put-segments", wire.PutSegments, "write", _thread),
    Endpoint("put-with-writes", wire.PutWithWrites, "write", _held),
    Endpoint("delete-thread", wire.DeleteThread, "administer", _thread),
    Endpoint("delete-for-runs", wire.DeleteForRuns, "administer", _all),
    Endpoint("copy-thread", wire.CopyThread, "administer", _source_and_target),
    Endpoint("prune", wire.Prune, "administer", lambda request: request.thread_ids),
)
