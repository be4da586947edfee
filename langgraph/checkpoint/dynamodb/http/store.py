"""`HttpStore`: the store for agents without AWS access. The gateway runs its operations."""

import array
import json
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import ListNamespacesOp, TTLConfig
from typing_extensions import Unpack, override

from langgraph.store.dynamodb import memory_items, partitions, resources, similarity
from langgraph.store.dynamodb.batch import Asked, Batch, Get, Outcome, times_record
from langgraph.store.dynamodb.json_values import matches
from langgraph.store.dynamodb.put import NewMemory
from langgraph.store.dynamodb.reads import FoundItem, MemoryItem, with_revision
from langgraph.store.dynamodb.store import TableStore

from .. import errors
from .._format.codec import Codec, rough_bytes
from .._format.moments import moment_of
from .._operations.arguments import COUNT_MAX
from .._runtime.steps import Emit, Op, Stream, gather, work
from ..gateway import memory_calls
from .service import ServiceClient
from .transport import GatewayKeywords

# As a store on the table, with a serializer that can write every number.
_CODEC = Codec(JsonPlusSerializer(pickle_fallback=True))
_EXPORTED_AT_ONCE = 16
# What a search that goes on behind a full page asks for at once, and what a memory takes beside its value.
_AHEAD_BYTES = 4_000_000
_MEMORY_BYTES = 1_000
_RECORD = ("namespace", "key", "created_at", "updated_at", "ttl_minutes", "expires_at")


@dataclass
class _RemoteListing:
    """The memories that the service has returned of a search, behind its pages."""

    namespace: Sequence[str]
    read_at: float
    changes_before: int = 0
    found: list[memory_calls.Memory] = field(default_factory=list)
    is_whole: bool = False
    """Whether nothing else follows."""
    ahead: int = 0
    """How many memories to ask for next, at least."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory that it takes, in bytes."""
        return _size_of(self.found)


def _size_of(found: Iterable[memory_calls.Memory]) -> int:
    return sum(_MEMORY_BYTES + len(each.value or "") for each in found)


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
        index: similarity.StoreIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: Unpack[GatewayKeywords],
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        embedder = None if index is None else similarity.Embedder(index)
        if embedder is not None and embedder.search != "exact":
            msg = (
                f"index has search={embedder.search!r}, and the gateway compares vectors exactly, by itself: an"
                ' engine would not see what others put; leave "search" out of index'
            )
            raise errors.CheckpointerConfigurationError(msg)
        super().__init__(embedder, ttl)
        self._listings = resources.Listings[_RemoteListing](resources.LISTINGS_BYTES_MAX)
        self._connect(url, options, events_prefix="store.")

    @override
    def _batch(self, batch: Batch) -> Op[Outcome]:
        if batch.count == len(batch.searches) == 1:
            [asked] = batch.searches.values()
            page = yield from self._page(asked, self._search(asked, batch))
            return Outcome([_found(page)], [])
        gets = [
            memory_calls.StoreGet(
                each.address.namespace, each.address.key, op="get", refresh_ttl=each.refresh_ttl
            )
            for each in batch.gets.values()
        ]
        searches = [self._search(each, batch) for each in batch.searches.values()]
        # The reads come first, also if there are several requests.
        reads: list[memory_calls.StoreOp] = [*gets, *searches, *map(_list, batch.lists.values())]
        puts = yield from gather([self._put(each, batch) for each in batch.puts])
        with self._listings.changing(batch.namespaces):
            results = yield from self._results([*reads, *puts])
        wanted: dict[int, Any] = {**batch.gets, **batch.searches, **batch.lists}
        shown = map(_result, wanted.values(), results[: len(reads)])
        found = batch.results(zip(wanted, shown, strict=True))
        stored = (each for each in results[len(reads) :] if isinstance(each, memory_calls.PutRevision))
        return Outcome(found, [each.revision for each in stored])

    @override
    def _remove(self, namespace_prefix: tuple[str, ...], *, is_erasure: bool) -> Op[int]:
        function = memory_calls.delete_namespace if is_erasure else memory_calls.sweep_ttl
        removed, after = 0, None
        with self._listings.changing([namespace_prefix]):
            while True:
                part = yield from self._service.ask(function, namespace_prefix, after)
                removed += part.deleted
                after = part.after
                if after is None:
                    return removed

    @override
    def _export_items(self, namespace_prefix: tuple[str, ...]) -> Stream[dict[str, Any]]:
        search = memory_calls.StoreSearch(
            op="search",
            namespace_prefix=namespace_prefix,
            limit=_EXPORTED_AT_ONCE,
            refresh_ttl=False,
            order="key",
        )
        while True:
            try:
                [page] = yield from self._results([search])
            except errors.SearchLimitError:
                # Large values are too many for one search of the service. Fewer are not.
                if search.limit == 1:
                    raise
                search = replace(search, limit=search.limit // 2)
                continue
            for each in page:
                if each.value is not None:
                    record = {name: getattr(each, name) for name in _RECORD}
                    yield Emit({**record, "namespace": [*each.namespace], "value": json.loads(each.value)})
            if len(page) < search.limit:
                return
            search = replace(search, after=memory_calls.Seen(page[-1].namespace, page[-1].key))

    def _page(self, asked: Asked, search: memory_calls.StoreSearch) -> Op[list[memory_calls.Memory]]:
        """Return what a search finds. If it goes on behind a full page, ask for what follows, too, and keep that."""
        wanted, now = asked.search, time.time()
        listing = self._listings.take(asked.listing, wanted.offset, now)
        if listing is None:
            listing = self._listings.begin(_RemoteListing(wanted.namespace, now))
        needed = wanted.limit - len(listing.found)
        if needed > 0 and not listing.is_whole:
            search = replace(search, offset=wanted.offset + len(listing.found), limit=needed)
            yield from self._read_on(listing, search)
        page = listing.found[: wanted.limit]
        del listing.found[: wanted.limit]
        if len(page) == wanted.limit > 0:
            self._listings.keep(asked.listing, wanted.needed, listing, now)
        return page

    def _read_on(self, listing: _RemoteListing, search: memory_calls.StoreSearch) -> Op[None]:
        """Read what a search finds, and what follows as far as it fits into one response."""
        needed, limit = search.limit, max(search.limit, listing.ahead)
        try:
            [found] = yield from self._results([replace(search, limit=limit)], needed)
        except (errors.CheckpointerInputError, errors.SearchLimitError):
            # What was asked for beyond the page may be what is too much.
            limit = needed
            [found] = yield from self._results([search])
        read = [*found[:needed], *takewhile(lambda each: each.value is not None, found[needed:])]
        listing.found += read
        listing.is_whole = len(read) == len(found) < limit
        # Reading renews ttls, so memories with one are not read before they are asked for.
        renews = search.refresh_ttl and any(each.ttl_minutes is not None for each in found)
        if found and not renews:
            listing.ahead = min(COUNT_MAX, _AHEAD_BYTES * len(found) // _size_of(found))

    def _results(self, ops: Sequence[memory_calls.StoreOp], needed: int | None = None) -> Op[list[Any]]:
        """Run operations by as many requests as they need, and read what a response had no room for.

        Of what a search finds, only so many `needed` ones are read.
        """
        results: list[Any] = [None] * len(ops)
        groups = self._service.groups(dict(enumerate(ops)), lambda position: _name_of(ops[position]))
        for left in (yield from groups):
            while left:
                response = yield from self._service.ask(memory_calls.batch, tuple(ops[each] for each in left))
                not_run = {left[each] for each in response.left}
                if len(not_run) == len(left):
                    msg = "the gateway ran no operation of a batch; retry the call with fewer operations"
                    raise errors.CheckpointerError(msg)
                for position, result in zip(left, response.results, strict=True):
                    op = ops[position]
                    results[position] = result
                    if position in not_run:
                        continue
                    if isinstance(op, memory_calls.StoreSearch):
                        results[position] = yield from self._whole(op, result, needed)
                    elif isinstance(op, memory_calls.StoreListNamespaces):
                        results[position] = yield from self._all_namespaces(op, result)
                left = sorted(not_run)
        return results

    def _whole(
        self, search: memory_calls.StoreSearch, found: Any, needed: int | None
    ) -> Op[list[memory_calls.Memory]]:
        """Return what a search found, with the values that a response had no room for; without those that are gone."""
        left = [each for each in found[:needed] if each.value is None]
        gets = [
            memory_calls.StoreGet(each.namespace, each.key, op="get", refresh_ttl=search.refresh_ttl)
            for each in left
        ]
        read = {(each.namespace, each.key): each for each in (yield from self._results(gets)) if each}
        wanted = None if search.filter is None else json.loads(search.filter)

        def whole(found: memory_calls.Memory) -> memory_calls.Memory:
            new = read.get((found.namespace, found.key))
            # Whoever has deleted or replaced it meanwhile has done so after the search.
            if found.value is not None or new is None or not matches(json.loads(new.value or ""), wanted):
                return found
            return replace(cast("memory_calls.Memory", new), score=found.score)

        return [whole(each) for each in found]

    def _all_namespaces(self, op: memory_calls.StoreListNamespaces, page: Any) -> Op[list[tuple[str, ...]]]:
        """Return the namespaces that a list found, and those of the pages behind it."""
        found: list[tuple[str, ...]] = page.namespaces
        while page.after is not None:
            more = replace(op, after=page.after)
            [page] = (yield from self._service.ask(memory_calls.batch, (more,))).results
            found += page.namespaces
        return found

    # Requests

    def _search(self, asked: Asked, batch: Batch) -> memory_calls.StoreSearch:
        wanted, after = asked.search, asked.search.after
        search = memory_calls.StoreSearch(
            op="search",
            namespace_prefix=wanted.namespace,
            filter=None if wanted.filter is None else _text(wanted.filter),
            limit=wanted.limit,
            offset=wanted.offset,
            refresh_ttl=asked.refresh_ttl,
            order=wanted.order,
            after=None
            if after is None
            else memory_calls.Seen(
                tuple(after.namespace), after.key, after.created_at.isoformat(), after.updated_at.isoformat()
            ),
        )
        if self._embedder is None or asked.query is None:
            return search
        vector = _packed(self._embedder.checked(batch.embedded_queries[asked.query]))
        return replace(search, vector=vector, distance=self._embedder.distance)

    def _put(self, new: NewMemory, batch: Batch) -> Op[memory_calls.StorePut]:
        index, expected = self._embedder, new.expected
        return memory_calls.StorePut(
            new.address.namespace,
            new.address.key,
            op="put",
            value=(yield from work(partial(_value_text, new), rough_bytes(new.value))),
            vectors=None
            if index is None
            else [_packed(index.checked(batch.embedded[text])) for text in new.texts],
            ttl_seconds=new.ttl_seconds,
            revision=None if expected is None else expected.revision,
            token=None if expected is None and new.times is None else secrets.token_hex(8),
            times=None if new.times is None else times_record(new.times),
        )


def _name_of(op: memory_calls.StoreOp) -> str:
    return f"the {op.op} of {getattr(op, 'key', 'a namespace')!r}"


def _result(wanted: Get | Asked | ListNamespacesOp, result: Any) -> Any:
    """Return the result of a read as LangGraph has it."""
    if isinstance(wanted, ListNamespacesOp):
        return partitions.limited(result, wanted)
    if isinstance(wanted, Asked):
        return _found(result)
    return None if result is None else _memory(MemoryItem, result, {})


def _found(page: Sequence[memory_calls.Memory]) -> list[Any]:
    return [_memory(FoundItem, each, {"score": each.score}) for each in page if each.value is not None]


def _memory(kind: Any, memory: memory_calls.Memory, more: Mapping[str, Any]) -> Any:
    fields = {
        "namespace": memory.namespace,
        "key": memory.key,
        "value": json.loads(memory.value or ""),
        "created_at": moment_of(memory.created_at),
        "updated_at": moment_of(memory.updated_at),
    }
    return with_revision(kind, {**fields, **more}, memory.revision)


def _list(wanted: ListNamespacesOp) -> memory_calls.StoreListNamespaces:
    conditions = [
        memory_calls.Condition(each.match_type, tuple(each.path)) for each in wanted.match_conditions or ()
    ]
    return memory_calls.StoreListNamespaces(
        op="list_namespaces",
        match_conditions=conditions,
        max_depth=wanted.max_depth,
    )


def _value_text(new: NewMemory) -> str | None:
    if new.value is None:
        return None
    # The gateway would refuse the same, after it has stored what was in an earlier request.
    memory_items.pack_value(_CODEC, new.value, f"value of memory {new.address.key!r}")
    return _text(new.value)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _packed(embedding: Sequence[float]) -> bytes:
    numbers = array.array("f", embedding)
    if sys.byteorder == "big":  # pragma: no cover - tests run on little-endian machines.
        numbers.byteswap()
    return numbers.tobytes()
