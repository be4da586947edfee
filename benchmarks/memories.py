"""What a store's calls cost, beside the other stores on DynamoDB, and what a search by similarity costs."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import ClientError
from langgraph.store.base import PutOp

from benchmarks.contestants import session_of
from benchmarks.meter import Meter, Tally
from benchmarks.report import Bound, Section, table
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS
from langgraph.store.dynamodb import DynamoDBStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tools.engine import Engine

_USERS, _MEMORIES, _VALUE_BYTES = 30, 20, 750
_LARGE_BYTES = 1_000_000
_FILES, _PAGE = 2_000, 100
_FOLDER = ("agent", "files")
_VECTORS = (100, 1_000, 5_000)
_DIMS, _FEW_DIMS = 1_024, 256
_OURS, _PAGES = "DynamoDBStore", f"all pages of {_FILES:,} files, {_PAGE} each"


def run(engine: Engine) -> Section:
    """Measure every store, and vectors in ours."""
    calls = {_OURS: _measure(engine, DynamoDBStore), "langgraph-checkpoint-aws": _measure(engine, _aws)}
    ours = calls[_OURS]
    vectors = [_search_vectors(engine, count, _DIMS) for count in _VECTORS]
    _, rare = _search_vectors(engine, _VECTORS[-1], _FEW_DIMS)
    return Section(
        {"memories": _calls_table(calls), "vectors": _vectors_table(vectors)},
        [
            Bound("write units of a put of a memory", ours["put"].write_units, most=1),
            Bound("read units of a put of a memory", ours["put"].read_units, most=1),
            Bound("requests of a search of one user", ours["search of a user"].requests, most=1),
            Bound("scans", sum(each.calls.get("Scan", 0) for each in ours.values()), most=0),
            Bound(f"read units of {_PAGES}", ours[_PAGES].read_units, most=200),
            Bound(f"requests of {_PAGES}", ours[_PAGES].requests, most=25),
            Bound(
                f"read units of a filter that matches 1 of {_VECTORS[-1]:,} vectors",
                rare.read_units,
                most=1_100,
            ),
            Bound("requests of it", rare.requests, most=10),
        ],
    )


def _aws(name: str, *, session: object, **reach: str) -> Any:  # noqa: ANN401
    return import_module("langgraph_checkpoint_aws").DynamoDBStore(name, boto3_session=session, **reach)


@contextmanager
def _metered(engine: Engine, make: Callable[..., Any], **options: Any) -> Iterator[tuple[Any, Meter]]:
    meter = Meter()
    store = make(
        f"memories-{uuid4().hex}",
        session=meter.watch(session_of(engine)),
        endpoint_url=engine.endpoint_url,
        region_name=engine.region_name,
        **options,
    )
    if hasattr(store, "setup"):
        store.setup()
    yield store, meter


def _measure(engine: Engine, make: Callable[..., Any]) -> dict[str, Tally]:
    """Return what each call cost; a call that the store cannot make is left out."""
    value = {"text": Random(1).randbytes(_VALUE_BYTES // 2).hex()}
    words = [f"{Random(number).randrange(1 << 20):x}" for number in range(2_000)]
    large = {"text": " ".join(Random(2).choices(words, k=_LARGE_BYTES // 6))}
    with _metered(engine, make) as (store, meter):
        for user in range(_USERS):
            for number in range(_MEMORIES):
                store.put(("memories", f"u{user}"), str(number), value)
        for number in range(_FILES):
            store.put(_FOLDER, str(number), {"content": f"hello {number}"})
        calls: dict[str, Callable[[], object]] = {
            "put": lambda: store.put(("memories", "u1"), "1", value),
            "search of a user": lambda: store.search(("memories", "u1"), limit=_MEMORIES),
            "search of all users": lambda: store.search(("memories",), limit=_MEMORIES),
            _PAGES: lambda: [
                store.search(_FOLDER, limit=_PAGE, offset=at) for at in range(0, _FILES + 1, _PAGE)
            ],
            "`list_namespaces` of all": lambda: store.list_namespaces(prefix=("memories",)),
            "put of 1 MB of text": lambda: store.put(("memories", "u1"), "large", large),
        }
        meter.lap()
        return {name: cost for name, call in calls.items() if (cost := _cost(call, meter))}


def _cost(call: Callable[[], object], meter: Meter) -> Tally | None:
    try:
        found = call()
    except ClientError:
        meter.lap()
        return None
    cost = meter.lap()
    # A search that finds nothing says so by an empty list.
    return None if found == [] else cost


def _calls_table(calls: Mapping[str, Mapping[str, Tally]]) -> str:
    rows = [[call, *(_cell(each.get(call)) for each in calls.values())] for call in calls[_OURS]]
    return table(["", *calls], rows)


def _cell(cost: Tally | None) -> str | None:
    return None if cost is None else f"{cost.write_units:g} / {cost.read_units:g} / {cost.requests}"


def _search_vectors(engine: Engine, count: int, dims: int) -> tuple[Tally, Tally]:
    """Return the cost of a search among so many vectors, and with a filter that one matches, which is not similar."""
    numbers = Random(count)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[numbers.gauss(0, 1) for _ in range(dims)] for _ in texts]

    index = {"dims": dims, "embed": embed, "fields": ["text"]}
    with _metered(engine, DynamoDBStore, index=index) as (store, meter):
        puts = [
            PutOp(_FOLDER, str(number), {"text": str(number), "kind": "usual" if number else "rare"})
            for number in range(count)
        ]
        for start in range(0, count, 250):
            store.batch(puts[start : start + 250])
        meter.lap()
        store.search(_FOLDER, query="anything", limit=10)
        every = meter.lap()
        store.search(_FOLDER, query="anything", filter={"kind": "rare"})
        return every, meter.lap()


def _vectors_table(costs: Sequence[tuple[Tally, Tally]]) -> str:
    rows = [
        (count, every.read_units, f"{every.read_units * READ_UNIT_DOLLARS * 1000:.3f}", rare.read_units)
        for count, (every, rare) in zip(_VECTORS, costs, strict=True)
    ]
    header = (
        "vectors under the prefix",
        "read units",
        "dollars a thousand searches",
        "if one matches a filter",
    )
    return table(header, rows)
