"""The accounting of requests to a gateway: their threads, units and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.dynamodb._runtime.events import Meter
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http.documents import packed

_THREADS = ("thread_id", "source_thread_id", "target_thread_id")


class GatewayAccounting:
    """Knows the documents of requests to a gateway."""

    def prepared(self, call: Call) -> Call:
        """Return the request: the transport's header asks for its units."""
        return call

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads that a request names, as the table has them."""
        named = [call.params[each] for each in _THREADS if call.params.get(each) is not None]
        return [*named, *call.params.get("thread_ids", ())]

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return nothing: these requests are for threads."""
        del call
        return ()

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units and bytes of documents."""
        units = (response[-1] if isinstance(response, list) else response).get("units") or {}
        if units.get("read") is not None:
            meter.read_units = (meter.read_units or 0.0) + units["read"]
        if units.get("write") is not None:
            meter.write_units = (meter.write_units or 0.0) + units["write"]
        meter.bytes_written += len(packed(call.params))
        meter.bytes_read += len(packed(response))
