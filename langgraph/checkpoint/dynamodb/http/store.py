"""`HttpStore`: the store for agents without AWS access. The gateway runs its operations."""

from __future__ import annotations

import array
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import ListNamespacesOp, Result, TTLConfig
from typing_extensions import Unpack, override

from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.limits import RETRY_SECONDS
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, gather, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerError
from langgraph.checkpoint.dynamodb.http.documents import Document
from langgraph.checkpoint.dynamodb.http.options import GatewayKeywords
from langgraph.checkpoint.dynamodb.http.service import GatewayAccounting, ServiceClient, ask
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.store.dynamodb.batch import Asked, Batch
from langgraph.store.dynamodb.index import Embedded, Embedder, StoreIndexConfig
from langgraph.store.dynamodb.memory_items import pack_value
from langgraph.store.dynamodb.put import NewMemory
from langgraph.store.dynamodb.reads import FoundItem, MemoryItem, with_revision
from langgraph.store.dynamodb.store import TableStore
from langgraph.store.dynamodb.transfer import times_record
from langgraph.store.dynamodb.values import matches

# As a store on the table, with a serializer that can write every number.
_CODEC = Codec(JsonPlusSerializer(pickle_fallback=True))
_EXPORTED_AT_ONCE = 16
_RECORD = ("namespace", "key", "created_at", "updated_at", "ttl_minutes", "expires_at")


class HttpStore(ServiceClient, TableStore):
    """A LangGraph store that reaches the table through the gateway, for sync and async code alike.

    The client embeds texts, and the gateway stores, filters and compares. So it reads the values, and encrypts them in
    the table if it has a key. Each method behaves like that of `DynamoDBStore`, with the same results and errors.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpStore

        store = HttpStore("https://gateway.example", auth="token")
        store.put(("acme", "user-1", "memories"), "food", {"likes": "pizza"})
        ```

    Args:
        index: Lets the store embed texts and search by similarity. Takes `dims`, `embed` and `fields` of LangGraph's
            `IndexConfig`, and `distance_type`: `cosine`, `l2` or `inner_product`. The client embeds, and the gateway
            compares.
        ttl: When memories expire, as LangGraph's `TTLConfig`: `default_ttl` in minutes, and `refresh_on_read`. In the
            table, expired memories are always omitted, and DynamoDB removes them.
        url: The gateway's address, such as `https://gateway.example`.
        auth: The credentials: a bearer token, a function that returns one, or an `httpx.Auth`. In a configuration,
            `token` or `token_file`.
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry; 0 sends
            each once.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        CheckpointerConfigurationError: `index` asks for another search than the gateway has.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        index: StoreIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: Unpack[GatewayKeywords],
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        self._index = None if index is None else Embedder(index)
        if self._index is not None and self._index.search != "exact":
            msg = (
                f"index has search={self._index.search!r}, and the gateway compares vectors exactly, by itself: an"
                ' engine would not see what others put; leave "search" out of index'
            )
            raise CheckpointerConfigurationError(msg)
        super().__init__(self._index, ttl)
        self._connect(
            url,
            options,
            timeout=timeout,
            retry_seconds=retry_seconds,
            accounting=GatewayAccounting(),
            events_prefix="store.",
        )

    @override
    def _batch(self, batch: Batch, embedded: Embedded, queries: Embedded) -> Op[list[Result]]:
        gets = [
            _get(each.address.namespace, each.address.key, each.refresh_ttl) for each in batch.gets.values()
        ]
        searches = [self._search(each, queries) for each in batch.searches.values()]
        # The reads come first, also if there are several requests.
        reads = [*gets, *searches, *map(_list, batch.lists.values())]
        puts = yield from gather([self._put(each, embedded) for each in batch.puts])
        results = yield from self._results([*reads, *puts])
        positions = [*batch.gets, *batch.searches, *batch.lists]
        return batch.results(zip(positions, map(_result, reads, results), strict=True))

    @override
    def _put_all(self, new: Sequence[NewMemory], embedded: Embedded) -> Op[list[str | None]]:
        puts = yield from gather([self._put(each, embedded) for each in new])
        return [each["revision"] for each in (yield from self._results(puts))]

    @override
    def _delete_namespace(self, namespace_prefix: tuple[str, ...]) -> Op[int]:
        return _removed("store/delete-namespace", namespace_prefix)

    @override
    def _sweep_ttl(self, namespace_prefix: tuple[str, ...]) -> Op[int]:
        return _removed("store/sweep-ttl", namespace_prefix)

    @override
    def _export_items(self, namespace_prefix: tuple[str, ...]) -> Stream[dict[str, Any]]:
        search = {
            "op": "search",
            "namespace_prefix": list(namespace_prefix),
            "limit": _EXPORTED_AT_ONCE,
            "refresh_ttl": False,
            "order": "key",
        }
        after: Document | None = None
        while True:
            [page] = yield from self._results([search | {"after": after}])
            for each in page["found"] + page["read"]:
                yield Emit({name: each[name] for name in _RECORD} | {"value": json.loads(each["value"])})
            places = page["found"] + page["rest"]
            if len(places) < _EXPORTED_AT_ONCE:
                return
            after = {name: places[-1][name] for name in ("namespace", "key")}

    def _results(self, ops: Sequence[Document]) -> Op[list[Any]]:
        """Run operations by as many requests as they need, and read what an answer had no room for."""
        results: list[Any] = [None] * len(ops)
        groups = self._service.groups(dict(enumerate(ops)), lambda position: _name_of(ops[position]))
        for left in (yield from groups):
            while left:
                answer = yield from ask("store/batch", {"ops": [ops[each] for each in left]})
                not_run = {left[each] for each in answer["left"]}
                if len(not_run) == len(left):
                    msg = "the gateway ran no operation of a batch; retry the call with fewer operations"
                    raise CheckpointerError(msg)
                for position, result in zip(left, answer["results"], strict=True):
                    results[position] = result
                    if ops[position]["op"] == "search" and position not in not_run:
                        result["read"] = yield from self._rest(ops[position], result["rest"])
                left = sorted(not_run)
        return results

    def _rest(self, search: Document, rest: Sequence[Document]) -> Op[list[Document]]:
        """Get the memories that a search found and an answer had no room for."""
        gets = [_get(each["namespace"], each["key"], search["refresh_ttl"]) for each in rest]
        read = yield from self._results(gets)
        wanted = None if search.get("filter") is None else json.loads(search["filter"])
        # Whoever has deleted or replaced one meanwhile has done so after the search.
        return [
            memory | {"score": each["score"]}
            for each, memory in zip(rest, read, strict=True)
            if memory is not None and matches(json.loads(memory["value"]), wanted)
        ]

    # Documents

    def _search(self, asked: Asked, queries: Embedded) -> Document:
        wanted = asked.search
        document: Document = {
            "op": "search",
            "namespace_prefix": list(wanted.namespace),
            "filter": None if wanted.filter is None else _text(wanted.filter),
            "limit": wanted.limit,
            "offset": wanted.offset,
            "refresh_ttl": asked.refresh_ttl,
            "order": wanted.order,
            "after": None,
        }
        if wanted.after is not None:
            document["after"] = {
                "namespace": list(wanted.after.namespace),
                "key": wanted.after.key,
                "created_at": wanted.after.created_at.isoformat(),
                "updated_at": wanted.after.updated_at.isoformat(),
            }
        if self._index is not None and asked.query is not None:
            document |= {
                "vector": _packed(self._index.checked(queries[asked.query])),
                "distance": self._index.distance,
            }
        return document

    def _put(self, new: NewMemory, embedded: Embedded) -> Op[Document]:
        index = self._index
        document: Document = {
            "op": "put",
            "namespace": list(new.address.namespace),
            "key": new.address.key,
            "value": (yield from work(partial(_value_text, new), rough_bytes(new.value))),
            "vectors": []
            if index is None
            else [_packed(index.checked(embedded[text])) for text in new.texts],
            "ttl_seconds": new.ttl_seconds,
        }
        if new.expected is not None:
            document["condition"] = {"revision": new.expected.revision, "token": secrets.token_hex(8)}
        if new.times is not None:
            document["times"] = times_record(new.times)
        return document


def _name_of(op: Document) -> str:
    return f"the {op['op']} of {op.get('key', 'a namespace')!r}"


def _result(op: Document, result: Any) -> Any:
    """Return the result of a read as LangGraph has it."""
    if op["op"] == "list_namespaces":
        return [tuple(each) for each in result["found"]]
    if op["op"] == "search":
        found = result["found"] + result["read"]
        return [_memory(FoundItem, each, {"score": each["score"]}) for each in found]
    return None if result is None else _memory(MemoryItem, result, {})


def _memory(kind: Any, document: Document, more: Mapping[str, Any]) -> Any:
    fields = {
        "namespace": tuple(document["namespace"]),
        "key": document["key"],
        "value": json.loads(document["value"]),
        "created_at": datetime.fromisoformat(document["created_at"]),
        "updated_at": datetime.fromisoformat(document["updated_at"]),
    }
    return with_revision(kind, {**fields, **more}, document["revision"])


def _removed(endpoint: str, namespace_prefix: Sequence[str]) -> Op[int]:
    document: Document = {"namespace_prefix": list(namespace_prefix), "after": None}
    removed = 0
    while True:
        answer = yield from ask(endpoint, document)
        removed += int(answer["deleted"])
        document["after"] = answer["after"]
        if answer["after"] is None:
            return removed


def _get(namespace: Sequence[str], key: str, refresh_ttl: bool) -> Document:
    return {"op": "get", "namespace": list(namespace), "key": key, "refresh_ttl": refresh_ttl}


def _list(wanted: ListNamespacesOp) -> Document:
    return {
        "op": "list_namespaces",
        "match_conditions": [
            {"match_type": each.match_type, "path": list(each.path)} for each in wanted.match_conditions or ()
        ],
        "max_depth": wanted.max_depth,
        "limit": wanted.limit,
        "offset": wanted.offset,
    }


def _value_text(new: NewMemory) -> str | None:
    if new.value is None:
        return None
    # The gateway would refuse the same, after it has stored what was in an earlier request.
    pack_value(_CODEC, new.value, f"value of memory {new.address.key!r}")
    return _text(new.value)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _packed(embedding: Sequence[float]) -> bytes:
    numbers = array.array("f", embedding)
    if sys.byteorder == "big":  # pragma: no cover - tests run on little-endian machines.
        numbers.byteswap()
    return numbers.tobytes()
