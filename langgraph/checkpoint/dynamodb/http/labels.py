"""Shared by the clients of the store and of the node cache: sending many things in requests that are not too large.

A request has a bounded number of operations, and a body of a bounded size, which the gateway tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from langgraph.checkpoint.dynamodb._runtime.events import Meter
from langgraph.checkpoint.dynamodb._runtime.requests import grouped
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http.documents import packed
from langgraph.checkpoint.dynamodb.http.service import Service

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]

OPERATIONS_MAX = 250
# Every gateway takes this much, so that a small request needs no look at the limits.
_BODY_BYTES_SAFE = 500_000
# No more goes into one request, unless one thing alone is larger.
_TOGETHER_BYTES_MAX = 4_000_000
# What surrounds the operations of a request.
_FRAME_BYTES = 1_000
_MANY = ("ops", "records", "keys", "entries")
_LABELS = ("namespace", "namespace_prefix", "prefix")


def in_requests(
    service: Service, things: Sequence[T], size_of: Callable[[T], int], name_of: Callable[[T], str]
) -> Op[list[list[T]]]:
    """Return groups of things that fit into one request each.

    Raises:
        CheckpointerInputError: One of the things is too large for any request.
    """
    bytes_max = _BODY_BYTES_SAFE
    if sum(map(size_of, things)) > bytes_max:
        about = yield from service.about()
        bytes_max = about.decompressed_bytes_max - _FRAME_BYTES
    for each in things:
        if size_of(each) > bytes_max:
            msg = (
                f"{name_of(each)} has {size_of(each):,} bytes as it is sent, over the {bytes_max:,} that fit into a"
                " request to this gateway; split it, or raise body_bytes_max and decompressed_bytes_max in its limits"
                " as far as its host allows"
            )
            raise CheckpointerInputError(msg)
    together = min(bytes_max, _TOGETHER_BYTES_MAX)
    return [each for each in grouped(things, size_of, together, OPERATIONS_MAX) if each]


class LabelAccounting:
    """Knows the documents of requests for memories and cached nodes."""

    def __init__(self, *, has_tenants: bool = True) -> None:
        """Take whether the first label of a namespace names a tenant."""
        self._has_tenants = has_tenants

    def prepared(self, call: Call) -> Call:
        """Return the request: the transport's header asks for its units."""
        return call

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return nothing: these requests are for no threads."""
        del call
        return ()

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces that a request names."""
        return set(_labels_in(call.params)) if self._has_tenants else ()

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units, and bytes of documents."""
        units = response.get("units") or {}
        if units.get("read") is not None:
            meter.read_units = (meter.read_units or 0.0) + units["read"]
        if units.get("write") is not None:
            meter.write_units = (meter.write_units or 0.0) + units["write"]
        meter.bytes_written += len(packed(call.params))
        meter.bytes_read += len(packed(response))


def _labels_in(params: Mapping[str, Any]) -> Iterator[str]:
    for each in (params, *(inner for name in _MANY for inner in params.get(name, ()))):
        for name in _LABELS:
            yield from (each.get(name) or ())[:1]
