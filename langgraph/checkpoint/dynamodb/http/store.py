"""`HttpStore`: the store for agents without AWS access. The gateway runs its operations."""

from __future__ import annotations

import array
import json
import secrets
import sys
from collections.abc import Sequence
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
from langgraph.store.dynamodb.reads import FoundItem, MemoryItem, moment, with_revision
from langgraph.store.dynamodb.store import TableStore
from langgraph.store.dynamodb.values import matches

# As a store on the table, with a serializer that can write every number.
_CODEC = Codec(JsonPlusSerializer(pickle_fallback=True))


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
        sent += [_Sent(None, {"op": "put", **each}) for each in puts]
        found = yield from self._results(sent)
        return batch.results(found.items())

    @override
    def _put_all(self, new: Sequence[NewMemory], embedded: Embedded) -> Op[list[str | None]]:
        if len(new) == 1 and new[0].expected is not None:
            document = yield from self._put(new[0], embedded)
            document |= {"revision": new[0].expected.revision, "token": secrets.token_hex(8)}
            yield from self._groups([_Sent(None, document)])
            return [(yield from ask("store/put-if", document))["revision"]]
        records = yield from gather([self._record(each, embedded) for each in new])
        sent = [_Sent(None, each) for each in records]
        stored: list[str | None] = []
        for group in (yield from self._groups(sent)):
            answer = yield from ask("store/import-items", {"records": [each.document for each in group]})
            stored += ["stored" if each else None for each in answer["stored"]]
        return stored

    @override
    def _delete_namespace(self, namespace_prefix: tuple[str, ...]) -> Op[int]:
        return _removed("store/delete-namespace", namespace_prefix)

    @override
    def _sweep_ttl(self, namespace_prefix: tuple[str, ...]) -> Op[int]:
        return _removed("store/sweep-ttl", namespace_prefix)

    @override
    def _export_items(self, namespace_prefix: tuple[str, ...]) -> Stream[dict[str, Any]]:
        after: Any = None
        while True:
            answer = yield from _part("store/export-items", namespace_prefix, after)
            for each in answer["records"]:
                yield Emit(each | {"value": json.loads(each["value"])})
            after = answer["after"]
            if after is None:
                return

    def _groups(self, sent: Sequence[_Sent]) -> Op[list[list[_Sent]]]:
        return self._service.groups({each: each.document for each in sent}, _Sent.name)

    def _results(self, sent: Sequence[_Sent]) -> Op[dict[int, Any]]:
        """Run operations by as many requests as they need; return the results of reads by their positions."""
        results: dict[int, Any] = {}
        for group in (yield from self._groups(sent)):
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
                results[each.position] = yield from self._read(each.document, result)
        return [sent[position] for position in sorted(left)]

    def _read(self, document: Document, result: Any) -> Op[Any]:
        """Return the result of a read as LangGraph has it."""
        if document["op"] == "get":
            return None if result is None else with_revision(MemoryItem, *_fields(result))
        if document["op"] == "list_namespaces":
            return [tuple(each) for each in result["found"]]
        found = [with_revision(FoundItem, *_fields(each, scored=True)) for each in result["found"]]
        return found + (yield from self._rest(document, result["rest"]))

    def _rest(self, search: Document, rest: Sequence[Document]) -> Op[list[FoundItem]]:
        """Get the memories that a search found and an answer had no room for."""
        gets = [
            _Sent(position, _get(each["namespace"], each["key"], search["refresh_ttl"]))
            for position, each in enumerate(rest)
        ]
        read = yield from self._results(gets)
        wanted = None if search["filter"] is None else json.loads(search["filter"])
        found: list[FoundItem] = []
        for position, each in enumerate(rest):
            memory: MemoryItem | None = read[position]
            # Whoever has deleted or replaced it meanwhile has done so after the search.
            if memory is not None and matches(memory.value, wanted):
                fields = memory.dict() | {"score": each["score"]}
                found.append(with_revision(FoundItem, fields, memory.revision))
        return found

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
        return {
            "namespace": list(new.address.namespace),
            "key": new.address.key,
            "value": (yield from work(partial(_value_text, new), rough_bytes(new.value))),
            "vectors": self._vectors(new, embedded),
            "ttl_seconds": new.ttl_seconds,
        }

    def _record(self, new: NewMemory, embedded: Embedded) -> Op[Document]:
        times: Any = new.times
        expires_at = times.expires_at
        record = yield from self._put(new, embedded)
        ttl_seconds = record.pop("ttl_seconds")
        return record | {
            "created_at": moment(times.created_us).isoformat(),
            "updated_at": moment(times.updated_us).isoformat(),
            "ttl_minutes": None if ttl_seconds is None else ttl_seconds / 60,
            "expires_at": None if expires_at is None else moment(expires_at * 1_000_000).isoformat(),
        }

    def _vectors(self, new: NewMemory, embedded: Embedded) -> list[bytes]:
        if self._index is None:
            return []
        return [_packed(self._index.checked(embedded[text])) for text in new.texts]


class _Sent:
    """An operation to send, and the position of its result; `None` for a put."""

    def __init__(self, position: int | None, document: Document) -> None:
        self.position = position
        self.document = document

    def name(self) -> str:
        """Return what to call it in an error."""
        return f"the {self.document.get('op', 'put')} of {self.document.get('key', 'a namespace')!r}"


def _fields(document: Document, *, scored: bool = False) -> tuple[dict[str, Any], str]:
    fields = {
        "namespace": tuple(document["namespace"]),
        "key": document["key"],
        "value": json.loads(document["value"]),
        "created_at": datetime.fromisoformat(document["created_at"]),
        "updated_at": datetime.fromisoformat(document["updated_at"]),
    }
    return fields | ({"score": document["score"]} if scored else {}), document["revision"]


def _part(endpoint: str, namespace_prefix: Sequence[str], after: Any) -> Op[Document]:
    """Ask for the next part of what takes several requests."""
    return ask(endpoint, {"namespace_prefix": list(namespace_prefix), "after": after})


def _removed(endpoint: str, namespace_prefix: Sequence[str]) -> Op[int]:
    answer = yield from _part(endpoint, namespace_prefix, None)
    removed = int(answer["deleted"])
    while answer["after"] is not None:
        answer = yield from _part(endpoint, namespace_prefix, answer["after"])
        removed += int(answer["deleted"])
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
