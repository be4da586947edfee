"""Which requests an operation makes, in their order, where nobody comes in its way: none that it can do without."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import noise
from tests.support.harness import TABLE, THREAD, TTL_SECONDS, Harness, Process, Run, confirms

BIG = noise(60_000)
# More than an item of writes holds itself.
LARGE = noise(100_000)

TAKE_EPOCH = "update_item T SET"
SEGMENTS = "batch_write_item PutRequest S#"


def _requests(run: Run[Any]) -> list[str]:
    """Perform an operation; return what it asked for, whatever number of segments that was."""
    told: list[str] = []
    for each in map(_told, run.trace()):
        if told[-1:] != [each] or "S#" not in each:
            told.append(each)
    return told


def _told(call: Call) -> str:
    if call.method == "query":
        pk, begins, *_ = *(each["S"] for each in call.params["ExpressionAttributeValues"].values()), ""
        return f"query {pk} {begins}".strip()
    if call.method == "batch_get_item":
        asked = call.params["RequestItems"][TABLE]
        return f"batch_get_item {_short(asked['Keys'][0])}{' strongly' * asked['ConsistentRead']}"
    if call.method == "batch_write_item":
        requests = [next(iter(each.items())) for each in call.params["RequestItems"][TABLE]]
        kinds = {f"{method} {_short({**content}.popitem()[1])}" for method, content in requests}
        return f"batch_write_item {', '.join(sorted(kinds))}"
    word = call.params.get("UpdateExpression", "").split(" ")[0]
    return f"{call.method} {_short(call.params.get('Key') or call.params['Item'])} {word}".strip()


def _short(key: Any) -> str:
    sk: str = key["SK"]["S"]
    return "S#" if sk.startswith("S#") else sk


# Whether another saver has the thread, in the two ways there are, and whether one has anything.
OTHER_SAVERS = ["query CHECKPOINT_t #", "query t #checkpoint#", "query -"]


def _stored(checkpoint_id: str) -> list[str]:
    return [f"put_item C#{checkpoint_id}#", "get_item T"]


def test_a_read_of_what_is_not_there(harness: Harness, process: Process) -> None:
    """It looks once whether another saver has it."""
    for looked in (OTHER_SAVERS, []):
        assert _requests(harness.begin(process.read())) == ["query t# C#", *looked]
    harness.run(process.put("1", {"x": 1}))
    assert _requests(harness.begin(harness.process().read())) == ["query t# C#"]


def test_a_put(harness: Harness, process: Process) -> None:
    assert _requests(harness.begin(process.put("1", {"x": 1}))) == [
        *OTHER_SAVERS,
        TAKE_EPOCH,
        *_stored("1"),
    ]
    assert _requests(harness.begin(process.put("2", {"x": 2}, "1"))) == _stored("2")
    # One without a parent says that there is nothing: the thread may have been deleted.
    assert _requests(harness.begin(process.put("3", {"x": 3}))) == [TAKE_EPOCH, *_stored("3")]
    other = harness.process()
    assert _requests(harness.begin(other.put("4", {"x": 4}, "3"))) == ["get_item C#3#", *_stored("4")]
    assert _requests(harness.begin(other.put("5", {"x": 5}, "4"))) == _stored("5")


def test_a_put_into_a_namespace(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("1", {}))
    for checkpoint_id, namespace, is_new in [("1", "a", True), ("1", "b", True), ("2", "a", False)]:
        requests = _requests(harness.begin(expiring.put(checkpoint_id, {}, namespace=namespace)))
        assert requests == [*([f"put_item N#{namespace}"] if is_new else []), *_stored(checkpoint_id)]
    # By a clock that was behind, the marker's token would be higher, and the put would put it twice.
    harness.now += 1
    other = harness.process(TTL_SECONDS)
    requests = _requests(harness.begin(other.put("3", {}, "2", namespace="a")))
    assert requests == ["get_item C#2#", "put_item N#a", *_stored("3")]
    assert _requests(harness.begin(other.put("4", {}, "3", namespace="a"))) == _stored("4")


def test_a_put_by_the_process_that_pruned_the_thread(harness: Harness, process: Process) -> None:
    """It remembers nothing of what has gone, nor of what stayed, which was of the epoch that has ended."""
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": 2}, "1"))
    harness.run(process.prune())
    assert _requests(harness.begin(process.put("3", {"x": 3}, "2"))) == ["get_item C#2#", *_stored("3")]
    gone = ["get_item C#1#", "query t# C#"]
    assert _requests(harness.begin(process.put("4", {"x": 4}, "1"))) == [*gone, *_stored("4")]
    harness.run(process.prune())
    assert _requests(harness.begin(process.put("5", {"x": 5}))) == [TAKE_EPOCH, *_stored("5")]


def test_a_put_whose_thread_is_pruned_before_it_looks(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 1}))
    harness.run(process.put("2", {"x": 2}, "1"))
    put = harness.begin(process.put("3", {"x": 3}, "2")).until(confirms)
    harness.run(harness.process().prune(2))
    assert _requests(put) == ["get_item T", "get_item C#2#", *_stored("3")]


def test_writes(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}))
    update = ["update_item C#1#W#task SET"]
    small, resume = [("x", 1)], [("__resume__", "yes")]
    # Once more it is the update that finds them there. Special ones may be a run's last, so they look for the thread.
    for writes in (small, small, [("__resume__", "no")], resume, resume):
        looks = [] if writes is small else ["get_item T"]
        assert _requests(harness.begin(process.put_writes("1", writes))) == [*update, *looks]
        harness.now += 1
    # Who knows nothing of the thread asks for its ttl.
    assert _requests(harness.begin(harness.process().put_writes("1", small))) == ["get_item T", *update]
    update = ["update_item C#1#W#other SET"]
    large = process.put_writes("1", [("x", LARGE)], "other")
    assert _requests(harness.begin(large)) == [SEGMENTS, *update, "get_item T"]
    large = process.put_writes("1", [("x", LARGE)], "other", namespace="a")
    assert _requests(harness.begin(large)) == ["put_item N#a", SEGMENTS, *update, "get_item T"]


def test_writes_of_a_thread_that_is_not_there_look_whose_it_is(harness: Harness) -> None:
    calls = _requests(harness.begin(harness.process().put_writes("1", [("x", 1)])))
    assert calls == ["get_item T", *OTHER_SAVERS, TAKE_EPOCH, "update_item C#1#W#task SET"]


def test_a_copy_looks_whose_its_target_is_before_it_writes(harness: Harness) -> None:
    harness.run(harness.process().put("1", {}))
    calls = _requests(harness.begin(copy_thread(harness.process().storage, THREAD, "copy")))
    first_write = next(
        position for position, call in enumerate(calls) if not call.startswith(("query", "get_item"))
    )
    assert [call for call in calls[:first_write] if call in OTHER_SAVERS] != []


@pytest.mark.parametrize("knows_the_thread", [False, True])
def test_writes_into_a_namespace(harness: Harness, *, knows_the_thread: bool) -> None:
    harness.run(harness.process(TTL_SECONDS).put("1", {}))
    process = harness.process(TTL_SECONDS)
    if knows_the_thread:
        harness.run(process.put("1", {}))
    known = [] if knows_the_thread else ["get_item T"]
    # The head, which is not cached, tells until when it is kept: at each attempt, and the task's item is there already
    # the second time.
    head, update = "get_item C#1#", "update_item C#1#W#task SET"
    for requests in ([*known, head, "put_item N#a", update], [head, update, head]):
        writes = harness.begin(process.put_writes("1", [("__resume__", 1)], namespace="a"))
        assert _requests(writes) == [*requests, "get_item T"]


def test_small_writes_name_what_their_checkpoint_has(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"big": noise(40_000), "other": noise(40_000, 1)}))
    stored = len(harness.items("S#"))
    harness.run(process.put_writes("1", [("big", noise(40_000))], "as it is"))
    harness.run(process.put_writes("1", [("big", noise(40_000, 2))], "new"))
    as_it_is, new = (item_bytes(item) for item in harness.items("C#1#W#").values())
    # The checkpoint has the end of the value in its head, where writes cannot name it.
    assert as_it_is < 16 * 1024 < 40_000 < new
    assert len(harness.items("S#")) == stored


def test_writes_whose_thread_is_pruned_before_they_look(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}))
    writes = harness.begin(process.put_writes("1", [("x", LARGE)])).until(confirms)
    harness.run(harness.process().prune())
    assert TAKE_EPOCH not in _requests(writes), "the look has told the epoch"


def test_what_lives_long_enough_is_not_renewed(harness: Harness, expiring: Process) -> None:
    """What is stored is kept for three ttls, and the state is renewed when it is kept for little more than two."""
    harness.run(expiring.put("0", {"big": BIG}, namespace="a"))
    harness.run(expiring.put("1", {"big": BIG}, "0", (), namespace="a"))
    marker, segments, thread = "update_item N#a SET", "update_item S# SET", "update_item T SET"
    renewed = [[thread], [thread, marker, segments, thread], [thread], [thread, marker, segments, thread]]
    for checkpoint_id, expected in enumerate(renewed, start=2):
        harness.now += 0.6 * TTL_SECONDS
        put = expiring.put(str(checkpoint_id), {"big": BIG}, str(checkpoint_id - 1), (), namespace="a")
        requests = _requests(harness.begin(put))
        assert [each for each in requests if each in (segments, thread) or "N#a" in each] == expected


@pytest.mark.parametrize("operation", ["prune", "delete_thread"])
def test_a_deletion(harness: Harness, process: Process, operation: str) -> None:
    for checkpoint_id in ("1", "2"):
        harness.run(process.put(checkpoint_id, {"big": noise(60_000, int(checkpoint_id))}))
    claim, read = ["update_item T SET", "query t# N#"], "query t#"
    end, settle, segments = "update_item T SET", "update_item T REMOVE", "batch_write_item DeleteRequest S#"
    heads = ["batch_write_item DeleteRequest C#1#"]
    if operation == "prune":
        kept = ["update_item C#2# SET"]
        rest = [end, read, *kept, settle, segments, settle]
    else:
        heads += ["batch_write_item DeleteRequest C#2#"]
        rest = [end, read, settle, segments, "delete_item T"]
    run = harness.begin(getattr(harness.process(), operation)())
    assert _requests(run) == [*claim, read, *heads, *rest]


def test_a_deletion_of_a_run(harness: Harness, process: Process) -> None:
    """Links to what goes are cut before it goes. What it named goes when the rest is known to need nothing of it."""
    for number in range(3):
        parent = str(number - 1) if number else None
        harness.run(process.put(str(number), {"x": noise(60_000, number)}, parent, run_id=f"run {number}"))
        harness.run(process.put_writes(str(number), [("x", 1)]))
    harness.run(process.put("0", {"x": 1}, namespace="inner", run_id="run 0"))
    harness.run(process.put_writes("9", [("x", 1)]))
    harness.now += 4000
    read = ["query t#", "query t#inner"]
    heads = ["batch_write_item DeleteRequest C#0#"] * 2
    assert _requests(harness.begin(harness.process().delete_for_runs("run 0"))) == [
        *("query run 0", "update_item T SET", "query t# N#", *read),
        *("update_item C#1# REMOVE", *heads, "batch_write_item DeleteRequest C#0#W#task"),
        *("update_item T SET", *read, "update_item C#1# SET", "update_item C#2# SET", "update_item T REMOVE"),
        *("delete_item C#9#W#task", "batch_write_item DeleteRequest S#", "delete_item N#inner"),
        "update_item T REMOVE",
    ]


def test_a_deletion_of_a_thread_reads_no_index_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_limits(monkeypatch)
    harness = Harness()
    harness.run(harness.process().put("1", {"x": noise(4_000)}))
    requests = _requests(harness.begin(harness.process().delete_thread()))
    assert not [each for each in requests if each.startswith("batch_get_item")]
    assert harness.model.items() == []


def test_writes_renew_nothing_that_outlives_them(harness: Harness, expiring: Process) -> None:
    harness.run(expiring.put("1", {"big": LARGE}))
    harness.now += TTL_SECONDS / 2
    requests = _requests(harness.begin(expiring.put_writes("1", [("big", LARGE)])))
    assert "update_item S# SET" not in requests
    harness.now += TTL_SECONDS
    requests = _requests(harness.begin(expiring.put_writes("1", [("big", LARGE)], "other")))
    assert "update_item S# SET" in requests


def test_a_renewal(harness: Harness, expiring: Process) -> None:
    """It is announced, and what an item names is kept before the item."""
    harness.run(expiring.put("1", {"x": BIG}))
    harness.run(expiring.put_writes("1", [("x", noise(100_000, 1))], "other"))
    harness.run(expiring.put("2", {"x": BIG}, namespace="a"))
    harness.now += 0.99 * TTL_SECONDS
    segments, thread = "update_item S# SET", "update_item T SET"
    assert _requests(harness.begin(expiring.put_writes("1", [("x", 1)]))) == [
        *("get_item T", thread, "query t# C#"),
        *(segments, "update_item C#1#W#other SET", segments, "update_item C#1# SET"),
        *("query t# N#", "update_item N#a SET", "query t#a C#", segments, "update_item C#2# SET"),
        *(thread, "get_item T", "update_item C#1#W#task SET"),
    ]


def test_a_delta_history_that_lives_long_enough_is_not_read(harness: Harness, expiring: Process) -> None:
    counters: Any = {"counters_since_delta_snapshot": {"log": (0, 0)}}
    harness.run(expiring.put("1", {}, **counters))
    assert _requests(harness.begin(expiring.put("2", {}, "1", **counters))) == _stored("2")


def test_a_copy(harness: Harness, process: Process) -> None:
    """It looks at the source once more before it shows the copy."""
    for namespace, checkpoint_id in (("", "1"), ("", "2"), ("inner", "3")):
        harness.run(process.put(checkpoint_id, {"big": BIG}, namespace=namespace))
    harness.run(process.put_writes("3", [("x", 1)], namespace="inner"))
    # First it looks at the source and at the target, makes the target's thread item, and looks twice for the moment.
    root, namespaces = "query t# C#", "query t# N#"
    copied = ["batch_get_item S# strongly", SEGMENTS]
    assert _requests(harness.begin(process.copy_thread("copy"))) == [
        *("get_item T", namespaces, root, "get_item T", "get_item T", "update_item T SET"),
        *(namespaces, root, "query t#inner C#", namespaces, root),
        *("put_item N#inner", "query t#inner C#", *copied, "put_item C#3#W#task", "put_item C#3#"),
        *(root, *copied, "put_item C#2#", "put_item C#1#", "get_item T", "update_item T REMOVE"),
    ]


def test_a_copy_of_nothing_looks_whether_another_saver_has_it(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}, namespace="a"))
    harness.remove(harness.items("C#")["C#1#"])
    copying = harness.begin(harness.process().copy_thread("copy"))
    requests = list(map(_told, copying.calls))
    for _ in range(4):
        copying.go_on()
        requests += map(_told, copying.calls)
    with pytest.raises(CheckpointNotFoundError, match="no checkpoint to copy"):
        copying.go_on()
    # Nothing was written.
    assert requests == ["get_item T", "query t# N#", "query t# C#", "query t#a C#", *OTHER_SAVERS]
