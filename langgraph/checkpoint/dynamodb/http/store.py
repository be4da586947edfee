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
from langgraph.checkpoint.dynamodb.http.options import GatewayKeywords
from langgraph.checkpoint.dynamodb.http.service import Document, GatewayAccounting, ServiceClient, ask
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.store.dynamodb.batch import Asked, Batch, NewMemory
from langgraph.store.dynamodb.index import Embedded, Embedder, StoreIndexConfig
from langgraph.store.dynamodb.memory_items import pack_value
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
        auth: The credentials: a bearer token, a function that returns one, `SigV4(...)`, or an `httpx.Auth`. In a
            configuration, one of `token`, `token_file` and `sigv4` (with `region_name`).
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
        sent = [
            _Sent(position, _get(each.address.namespace, each.address.key, each.refresh_ttl))
            for position, each in batch.gets.items()
        ]
        sent += [_Sent(position, self._search(each, queries)) for position, each in batch.searches.items()]
        sent += [_Sent(position, _list(each)) for position, each in batch.lists.items()]
        # The reads come first, also if there are several requests.
        puts = yield from gather([self._put(each, embedded) for each in batch.puts])
        sent += [_Sent(None, each) for each in puts]
        results = yield from self._results(sent)
        return batch.results(
            (each.position, _result(each.document["op"], results[each.position]))
            for each in sent
            if each.position is not None
        )

    @override
    def _put_all(self, new: Sequence[NewMemory], embedded: Embedded) -> Op[list[str | None]]:
        puts = yield from gather([self._put(each, embedded) for each in new])
        found = yield from self._results([_Sent(position, each) for position, each in enumerate(puts)])
        return [found[position]["revision"] for position in range(len(new))]

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
            results = yield from self._results([_Sent(0, search | {"after": after})])
            for each in results[0]["found"] + results[0]["read"]:
                yield Emit({name: each[name] for name in _RECORD} | {"value": json.loads(each["value"])})
            places = results[0]["found"] + results[0]["rest"]
            if len(places) < _EXPORTED_AT_ONCE:
                return
            after = {name: places[-1][name] for name in ("namespace", "key")}

    def _results(self, sent: Sequence[_Sent]) -> Op[dict[int, Any]]:
        """Run operations by as many requests as they need; return the results by their positions."""
        results: dict[int, Any] = {}
        groups = self._service.groups({each: each.document for each in sent}, _Sent.name)
        for group in (yield from groups):
            left: Sequence[_Sent] = group
            while left:
                left = yield from self._run_some(left, results)
        return results

    def _run_some(self, sent: Sequence[_Sent], results: dict[int, Any]) -> Op[list[_Sent]]:
        """Run operations by one request, and read what its answer had no room for; return those that it did not run."""
        answer = yield from ask("store/batch", {"ops": [each.document for each in sent]})
        left = {*answer["left"]}
        if len(left) == len(sent):
            msg = "the gateway ran no operation of a batch; retry the call with fewer operations"
            raise CheckpointerError(msg)
        for position, (each, result) in enumerate(zip(sent, answer["results"], strict=True)):
            if each.position is not None and position not in left:
                results[each.position] = result
                if each.document["op"] == "search":
                    result["read"] = yield from self._rest(each.document, result["rest"])
        return [sent[position] for position in sorted(left)]

    def _rest(self, search: Document, rest: Sequence[Document]) -> Op[list[Document]]:
        """Get the memories that a search found and an answer had no room for."""
        gets = [
            _Sent(position, _get(each["namespace"], each["key"], search["refresh_ttl"]))
            for position, each in enumerate(rest)
        ]
        read = yield from self._results(gets)
        wanted = None if search.get("filter") is None else json.loads(search["filter"])
        # Whoever has deleted or replaced one meanwhile has done so after the search.
        return [
            read[position] | {"score": each["score"]}
            for position, each in enumerate(rest)
            if read[position] is not None and matches(json.loads(read[position]["value"]), wanted)
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


class _Sent:
    """An operation to send, and the position of its result; `None` for a put."""

    def __init__(self, position: int | None, document: Document) -> None:
        self.position = position
        self.document = document

    def name(self) -> str:
        """Return what to call it in an error."""
        return f"the {self.document['op']} of {self.document.get('key', 'a namespace')!r}"


def _result(op: str, result: Any) -> Any:
    """Return the result of a read as LangGraph has it."""
    if op == "list_namespaces":
        return [tuple(each) for each in result["found"]]
    if op == "search":
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
