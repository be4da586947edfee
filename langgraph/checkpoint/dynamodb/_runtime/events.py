"""Events: one for each operation that was run, for the callable that the saver was given.

Nothing here runs without one. The meter of the running operation is a context variable: OS threads and tasks that an
operation starts run in copies of its context, so what they count belongs to it.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from .._format import items, limits, pricing, schema
from .._format.items import Item
from .._format.labels import name_of, partition_labels
from ..errors import CheckpointerUnavailableError, ThreadBusyError
from .failures import THROTTLED, error_code
from .steps import Call

logger = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["began", "ok", "refused", "error", "interrupted"]

# They change more than one item for good, so an event also says that one began: its process may die before it ends.
DELETIONS = frozenset({"delete_thread", "delete_owner", "delete_for_runs", "prune", "store.delete_namespace"})
ACQUIRE = "acquire"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One operation of a saver, a store or a cache. It holds no content, and ids only with `Events(with_ids=True)`."""

    table_name: str | None = None
    """The name or ARN of the table, as the saver has it; `None` through a gateway."""
    operation: str
    """The method: the saver's, such as `put`, the store's, such as `store.put`, or the cache's, such as `cache.get`.

    `acquire`, `renew` and `release` are those of a thread's lock.
    """
    outcome: Outcome
    """`began` comes before the end of a deletion, and only for deletions.

    `refused` is a lock that another runner has: no error.
    """
    error: str | None = None
    """The class of the exception, or the code of AWS's error."""
    tenant: str | None = None
    """The tenant of the operation's threads or memories; `None` if it has none, or several."""
    thread_id: str | None = None
    """The thread, if ids are asked for; `None` if there are several."""
    started_at: float = 0.0
    """When it began, in epoch seconds."""
    duration_seconds: float = 0.0
    """How long it ran; a list's consumer does not count."""
    waited_seconds: float = 0.0
    """How much of this it waited between attempts, or for a thread's lock or claim."""
    requests: int = 0
    attempts: int = 0
    """How often its requests were sent."""
    throttled: int = 0
    """How many of these were throttled."""
    read_units: float | None = None
    """The read units that DynamoDB reported, which it does not for failed requests.

    `None` if nothing was read, or if a gateway does not tell its client.
    """
    write_units: float | None = None
    bytes_read: int = 0
    """The bytes of items in responses; through a gateway, of documents."""
    bytes_written: int = 0
    segments_written: int = 0
    segments_reused: int = 0
    """Ids that its items name and that it did not write. An index segment counts once."""
    cache_hits: int = 0
    cache_misses: int = 0


OnEvent: TypeAlias = Callable[[Event], object]


def tenant_before_slash(thread_id: str) -> str | None:
    """Return the part of a thread id before its first slash; `None` if it has none, or nothing before it."""
    tenant, slash, _ = thread_id.partition("/")
    return tenant if slash and tenant else None


@dataclass(frozen=True)
class Events:
    """A receiver of events, with options for what events say about threads.

    Args:
        on_event: Receives each event, in the OS thread or on the event loop that ran the operation, before the call
            returns. It has to return at once.
        tenant_of: Returns a thread id's tenant. By default the part before the first slash. The tenant of memories is
            the first label of their namespace.
        with_ids: Whether events name the thread.
    """

    on_event: OnEvent
    tenant_of: Callable[[str], str | None] = tenant_before_slash
    with_ids: bool = False


class Span(Protocol):
    """An operation under way. An `on_event` that has a method `begin(event)` returns one from it, as tracers do."""

    def current(self) -> AbstractContextManager[object]:
        """Make it current while the operation runs: once, or for each step of a list."""

    def end(self, event: Event) -> None:
        """End it."""


class Accounting(Protocol):
    """Knows what the requests of one transport carry."""

    def prepared(self, call: Call) -> Call:
        """Return a request that also asks what it costs."""

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads that a request is for."""

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces that a request is for: the tenants of memories."""

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count what a request and its response carry."""


@dataclass
class Meter:
    """Counts of one operation, to which several OS threads may add."""

    table_name: str | None
    operation: str
    started_at: float
    span: Span | None = None
    error: Exception | None = None
    """An error that the operation has logged instead of raising it."""
    duration_seconds: float = 0.0
    waited_seconds: float = 0.0
    requests: int = 0
    retries: int = 0
    throttled: int = 0
    read_units: float | None = None
    write_units: float | None = None
    bytes_read: int = 0
    bytes_written: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    thread_ids: set[str] = field(default_factory=set)
    tenants: set[str | None] = field(default_factory=set)
    written: set[bytes] = field(default_factory=set)
    named: set[bytes] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count_lookups(self, found: Sequence[object]) -> None:
        """Count lookups in the cache; `None` is an entry that was not there."""
        missed = found.count(None)
        with self.lock:
            self.cache_hits += len(found) - missed
            self.cache_misses += missed

    def count_failure(self, error: Exception, wait_seconds: float | None) -> None:
        """Count a failed attempt and the wait before the next one; `None` if there is none."""
        with self.lock:
            self.throttled += error_code(error) in THROTTLED
            if wait_seconds is not None:
                self.retries += 1
                self.waited_seconds += wait_seconds

    def event(self, outcome: Outcome, error: BaseException | None, *, with_ids: bool) -> Event:
        """Return the event of the operation."""
        thread_id = next(iter(self.thread_ids)) if with_ids and len(self.thread_ids) == 1 else None
        # What both have under one name.
        counts = {name: value for name, value in vars(self).items() if name in Event.__annotations__}
        return Event(
            **{**counts, "error": None if error is None else _name_of(error)},
            outcome=outcome,
            tenant=next(iter(self.tenants)) if len(self.tenants) == 1 else None,
            thread_id=thread_id,
            attempts=self.requests + self.retries,
            segments_written=len(self.written),
            segments_reused=len(self.named - self.written),
        )


def _name_of(error: BaseException) -> str:
    """Return the code of AWS's error, or the class of the exception. An outage has the name of its cause."""
    if isinstance(error, CheckpointerUnavailableError):
        error = error.__cause__ or error
    return error_code(error) or type(error).__name__


running_meter: ContextVar[Meter | None] = ContextVar("langgraph_dynamodb_meter", default=None)
"""The meter of the running operation, if it is measured."""


class Observer:
    """Measures the operations of one object and passes their events on. A failing callable fails no operation."""

    def __init__(
        self,
        events: Events | OnEvent,
        accounting: Accounting,
        table_name: str | None = None,
        prefix: str = "",
    ) -> None:
        """Take the option `on_event`, the accounting of the transport, the table, and what names begin with."""
        self._table_name = table_name
        self._prefix = prefix
        self._events = events if isinstance(events, Events) else Events(events)
        self._accounting = accounting
        self._said: set[str] = set()

    # Operations

    def begin(self, name: str) -> Meter:
        """Return the meter of an operation that begins."""
        meter = Meter(self._table_name, self._prefix + name, time.time())
        begin = getattr(self._events.on_event, "begin", None)
        if begin is not None:
            with self._guarded():
                meter.span = begin(meter.event("began", None, with_ids=False))
        return meter

    @contextmanager
    def running(self, meter: Meter) -> Iterator[None]:
        """Measure what runs in the block: a whole operation, or one step of a list."""
        token, span = running_meter.set(meter), ExitStack()
        started = time.perf_counter()
        if meter.span is not None:
            with self._guarded():
                span.enter_context(meter.span.current())
        try:
            yield
        finally:
            with self._guarded():
                span.close()
            meter.duration_seconds += time.perf_counter() - started
            # A coroutine that is dropped with its event loop ends in another context.
            with suppress(ValueError):
                running_meter.reset(token)

    @contextmanager
    def ending(self, meter: Meter, when_dropped: Outcome) -> Iterator[None]:
        """Pass on the operation's event when the block ends."""
        try:
            yield
        except ThreadBusyError as error:
            # Somebody has the lock, which is what it is for. A deletion that gives up has failed.
            is_refused = meter.operation == ACQUIRE
            self._end(meter, "refused" if is_refused else "error", None if is_refused else error)
            raise
        except Exception as error:
            self._end(meter, "error", error)
            raise
        except GeneratorExit:
            self._end(meter, when_dropped, None)
            raise
        except BaseException as error:
            self._end(meter, "interrupted", error)
            raise
        self._end(meter, "error" if meter.error else "ok", meter.error)

    def _end(self, meter: Meter, outcome: Outcome, error: BaseException | None) -> None:
        event = self._pass_on(meter, outcome, error)
        if meter.span is not None:
            with self._guarded():
                meter.span.end(event)

    def _pass_on(self, meter: Meter, outcome: Outcome, error: BaseException | None) -> Event:
        event = meter.event(outcome, error, with_ids=self._events.with_ids)
        started = time.perf_counter()
        with self._guarded():
            self._events.on_event(event)
        passed = time.perf_counter() - started
        if passed > limits.EVENT_SECONDS_QUIET:
            self._say("on_event took %.2f s of a call; let it put events on a queue", passed)
        return event

    # Requests

    def send(self, send: Callable[[Call], Any], call: Call) -> Any:
        """Make a request and count it."""
        meter = self._sending(call)
        return self._sent(meter, call, send(self._accounting.prepared(call)))

    async def asend(self, asend: Callable[[Call], Awaitable[Any]], call: Call) -> Any:
        """Make a request on the running event loop and count it."""
        meter = self._sending(call)
        return self._sent(meter, call, await asend(self._accounting.prepared(call)))

    def _sending(self, call: Call) -> Meter:
        """Count a request. The first one of a deletion says that the deletion began."""
        # There is one wherever a runner runs; a request without one is made all the same.
        meter = running_meter.get() or Meter(None, "", 0.0)
        with meter.lock:
            is_first = meter.requests == 0
            meter.requests += 1
            meter.waited_seconds += call.delay_seconds
            with self._guarded():
                for thread_id in set(self._accounting.threads_of(call)) - meter.thread_ids:
                    meter.thread_ids.add(thread_id)
                    meter.tenants.add(self._events.tenant_of(thread_id))
                meter.tenants.update(self._accounting.labels_of(call))
        if is_first and meter.operation in DELETIONS:
            self._pass_on(meter, "began", None)
        return meter

    def _sent(self, meter: Meter, call: Call, response: Any) -> Any:
        with meter.lock, self._guarded():
            self._accounting.count(meter, call, response)
        return response

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Log an error instead of raising it."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it does, the call goes on.
            self._say("on_event failed; later errors are not logged", exc_info=True)

    def _say(self, message: str, *arguments: object, exc_info: bool = False) -> None:
        """Log each message once for each saver."""
        if message not in self._said:
            self._said.add(message)
            logger.warning(message, *arguments, exc_info=exc_info)


# The requests to a table: their threads, units, bytes and segments

READS = frozenset({"batch_get_item", "get_item", "query", "scan"})
_WRITES = frozenset({"batch_write_item", "delete_item", "put_item", "update_item"})
# An attribute that an update sets, and its value.
_SET = re.compile(r"(#\w+) (?:= )?(?:if_not_exists\(#\w+, )?(:\w+)")


def units_of(response: Mapping[str, Any]) -> float:
    """Return the units that a response reports."""
    reported = response.get("ConsumedCapacity", ())
    return sum(
        float(each["CapacityUnits"]) for each in ([reported] if isinstance(reported, Mapping) else reported)
    )


class TableAccounting:
    """Knows the requests of `Table`, and what DynamoDB says of them."""

    def __init__(self, *, labels_are_tenants: bool = True) -> None:
        """Take whether the first label of a namespace names a tenant."""
        self._labels_are_tenants = labels_are_tenants

    def prepared(self, call: Call) -> Call:
        """Return a request that also asks for the units it consumes."""
        if call.method not in READS | _WRITES:
            return call
        return replace(call, params={**call.params, "ReturnConsumedCapacity": "TOTAL"})

    def threads_of(self, call: Call) -> Iterable[str]:
        """Return the ids of the threads whose partitions a request names."""
        named = set(_partitions_of(call.params))
        # Keys of other savers, which a new thread is looked for under, have no "#".
        threads = (pk for pk in named if "#" in pk and partition_labels(pk) is None)
        return {items.parse_partition(pk).thread_id for pk in threads}

    def labels_of(self, call: Call) -> Iterable[str]:
        """Return the first labels of the namespaces whose partitions a request names."""
        if not self._labels_are_tenants:
            return ()
        named = (partition_labels(pk) or () for pk in _partitions_of(call.params))
        return {name_of(labels[0]) for labels in named if labels}

    def bytes_written(self, call: Call) -> int:
        """Return how many bytes the items have that a request writes."""
        return sum(map(pricing.item_bytes, _written_by(call.params)))

    def count(self, meter: Meter, call: Call, response: Any) -> None:
        """Count units, bytes and segments, and attempts that a client made by itself."""
        if "ConsumedCapacity" in response:
            if call.method in READS:
                meter.read_units = (meter.read_units or 0.0) + units_of(response)
            else:
                meter.write_units = (meter.write_units or 0.0) + units_of(response)
        meter.retries += response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
        meter.bytes_read += sum(map(pricing.item_bytes, _items_in(response)))
        for item in _written_by(call.params):
            meter.bytes_written += pricing.item_bytes(item)
            if items.sort_key(item).startswith(items.SEGMENTS):
                meter.written.add(items.segment_id_of(item))
            else:
                meter.named |= items.named_ids([item])


def _partitions_of(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the partition keys that a request names. A query of the index names none."""
    for name in ("Key", "Item"):
        if name in params:
            yield items.partition_key(params[name])
    if "KeyConditionExpression" in params and "IndexName" not in params:
        yield params["ExpressionAttributeValues"][":pk"]["S"]
    for request in params.get("RequestItems", {}).values():
        wanted = request["Keys"] if isinstance(request, Mapping) else map(_key_of_write, request)
        for each in wanted:
            yield each[schema.PARTITION_KEY]["S"]


def _key_of_write(request: Mapping[str, Any]) -> Item:
    key: Item = request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]
    return key


def _written_by(params: Mapping[str, Any]) -> Iterator[Item]:
    if "Item" in params:
        yield params["Item"]
    if "UpdateExpression" in params:
        values = params.get("ExpressionAttributeValues", {})
        names = params.get("ExpressionAttributeNames", {})
        changed = _SET.findall(params["UpdateExpression"])
        yield {**params["Key"], **{names[name]: values[value] for name, value in changed}}
    for request in params.get("RequestItems", {}).values():
        for each in () if isinstance(request, Mapping) else request:
            if "PutRequest" in each:
                yield each["PutRequest"]["Item"]


def _items_in(response: Mapping[str, Any]) -> Iterator[Item]:
    yield from response.get("Items", ())
    if "Item" in response:
        yield response["Item"]
    for found in response.get("Responses", {}).values():
        yield from found
