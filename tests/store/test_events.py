"""Events of the store: one for each call, with its method, tenant, units and outcome."""

from langgraph.store.base import GetOp, PutOp

from tests.store.conftest import MakeStore
from tests.support.checkpoints import noise
from tests.support.observed import Collected

ADA, BO = ("acme", "ada"), ("globex", "bo")


def methods(events: Collected) -> list[tuple[str, str]]:
    return [(each.operation, each.outcome) for each in events.events]


def test_each_call_has_one_with_its_method(make_store: MakeStore) -> None:
    events = Collected()
    store = make_store(on_event=events)
    store.put(ADA, "food", {"likes": "pizza"})
    revision = store.put_if(ADA, "food", {"likes": "soup"}, revision=None)
    assert revision is None
    store.get(ADA, "food")
    store.search(ADA)
    store.list_namespaces()
    store.batch([GetOp(ADA, "food"), PutOp(ADA, "sleep", {"likes": "much"})])
    store.delete(ADA, "food")
    records = list(store.export_items())
    store.import_items(records)
    store.sweep_ttl()
    store.delete_namespace(ADA)
    assert methods(events) == [
        *((f"store.{name}", "ok") for name in (
            "put", "put_if", "get", "search", "list_namespaces", "batch", "delete", "export_items",
            "import_items", "sweep_ttl",
        )),
        ("store.delete_namespace", "began"),
        ("store.delete_namespace", "ok"),
    ]  # fmt: skip
    assert all(each.requests == each.attempts > 0 for each in events.events)


def test_the_tenant_is_the_first_label(make_store: MakeStore) -> None:
    events = Collected()
    store = make_store(on_event=events)
    store.put(ADA, "food", {})
    store.put(("acme/globex", "ada"), "food", {})
    store.search(("acme",))
    store.batch([PutOp(ADA, "x", {}), PutOp(BO, "x", {})])
    assert [each.tenant for each in events.events] == ["acme", "acme/globex", "acme", None]
    assert all(each.thread_id is None for each in events.events)


def test_units_and_bytes_are_told(make_store: MakeStore) -> None:
    events = Collected()
    store = make_store(on_event=events)
    store.put(ADA, "big", {"text": noise(1500).hex()})
    store.get(ADA, "big")
    put, got = events.last("store.put"), events.last("store.get")
    assert (put.write_units or 0) > 0
    assert put.bytes_written > 1500
    # Whether its partition is still registered.
    assert (put.read_units or 0) > 0
    assert got.bytes_read > 1500
    assert (got.read_units or 0) > 0
    assert (got.write_units, got.cache_misses) == (None, 0)
    store.put(ADA, "big", {"text": noise(150_000).hex()})
    assert events.last("store.put").segments_written > 0
