"""The protocol is in one file: nobody else compares epochs, and operations send what it says, in its order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.threads import set_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.protocol import Thread
from tests.support.checkpoints import noise
from tests.support.harness import TABLE, THREAD, Harness
from tools.protocol_tables import TRANSITIONS

FOLDER = Path(package.__file__).parent
BIG = noise(60_000)
MUCH = noise(200_000)


# Nobody else compares epochs


def _comparisons(path: Path) -> Iterator[str]:
    """Yield the comparisons of a module that have an epoch on either side."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_for_none = any(isinstance(each, ast.Constant) and each.value is None for each in sides)
            is_of_names = any("EPOCH_NAMES" in ast.unparse(each) for each in sides)
            has_epoch = any(re.search(r"epoch|EPOCH", ast.unparse(each)) for each in sides)
            if has_epoch and not is_for_none and not is_of_names:
                yield f"{path.relative_to(FOLDER)}:{node.lineno}: {ast.unparse(node)}"


def test_epochs_are_compared_in_the_protocol_only() -> None:
    modules = [each for each in FOLDER.rglob("*.py") if each.name != "protocol.py"]
    assert not [found for each in modules for found in _comparisons(each)]


def test_the_protocol_compares_epochs() -> None:
    """Otherwise the test above would prove nothing."""
    assert len(list(_comparisons(FOLDER / "protocol.py"))) >= 3


# What is committed


NOW, BEFORE, LONG_AGO = b"now", b"before", b"long ago"


@pytest.mark.parametrize(
    ("epoch", "is_pending", "commits", "confirms"),
    [
        (NOW, False, True, True),
        (NOW, True, True, False),
        (BEFORE, False, True, False),
        (LONG_AGO, False, False, False),
        (None, False, False, False),
    ],
)
def test_what_is_committed_and_what_is_confirmed(
    epoch: bytes | None, is_pending: bool, commits: bool, confirms: bool
) -> None:
    item: items.Item = {items.EPOCH: {"B": NOW}, items.PREVIOUS: {"BS": [BEFORE]}}
    thread = Thread.parse({**item, items.PENDING: {"BOOL": True}} if is_pending else item)
    assert (thread.commits(epoch), thread.confirms(epoch)) == (commits, confirms)


@pytest.mark.parametrize(
    ("attribute", "is_committed"), [(None, True), (NOW, True), (BEFORE, True), (LONG_AGO, False)]
)
def test_a_part_without_an_epoch_names_no_segment(attribute: bytes | None, is_committed: bool) -> None:
    thread = Thread.parse({items.EPOCH: {"B": NOW}, items.PREVIOUS: {"BS": [BEFORE]}})
    writes: items.Item = {} if attribute is None else {"writes_epoch": {"B": attribute}}
    assert protocol.is_committed(writes, items.WRITES, thread) == is_committed
    assert protocol.is_committed(writes, items.WRITES, None) == (attribute is None)


# The states of a thread item


def _state(harness: Harness, name: str = THREAD) -> str:
    item = harness.items("T", name).get("T")
    if item is None:
        return "absent"
    thread = Thread.parse(item)
    return "pending" if thread.is_pending else ("copied" if thread.is_being_copied else "active")


def _traced(harness: Harness, *operations: Op[object], name: str = THREAD) -> set[tuple[str, str]]:
    """Run operations one after the other; return how the thread item's state changed with each request."""
    seen = set()
    for operation in operations:
        run = harness.begin(operation)
        while not run.done:
            before = _state(harness, name)
            run.go_on()
            seen.add((before, _state(harness, name)))
    return {(before, after) for before, after in seen if before != after}


def test_the_thread_item_changes_its_state_as_the_table_says() -> None:
    """All of its changes of state happen, and no other one does."""
    harness = Harness()
    process = harness.process()
    seen = _traced(harness, process.put("1", {"x": BIG}), process.prune(), process.delete_thread())
    # A deletion of what is not there, and a put that begins the epoch that a deletion left pending.
    seen |= _traced(harness, harness.process().delete_thread(), process.put("2", {"x": BIG}))
    deletion = harness.begin(harness.process().delete_thread())
    while _state(harness) != "pending":
        deletion.go_on()
    seen |= _traced(harness, harness.process().put("3", {"x": BIG}))
    # Copies: to a thread that is not there, has no checkpoint, or is being deleted; and one that dies.
    harness.run(set_thread(process.storage, "empty", None, "Trains", None))
    deletion = harness.begin(harness.process().delete_thread("leaving"))
    while _state(harness, "leaving") != "pending":
        deletion.go_on()
    for name in ("new", "empty", "leaving"):
        seen |= _traced(harness, process.copy_thread(name), name=name)
    copy = harness.begin(process.copy_thread("half"))
    while _state(harness, "half") != "copied":
        copy.go_on()
    seen |= _traced(harness, harness.process().delete_thread("half"), name="half")
    declared = {(before, each.after or before) for each in TRANSITIONS for before in each.before}
    assert seen == {(before, after) for before, after in declared if before != after}


# The order of requests: docs/design.md says what a crash between each two of them leaves


def _keys(call: Call) -> list[str]:
    params = call.params
    if call.method == "batch_write_item":
        writes = params["RequestItems"][TABLE]
        return [
            (each.get("PutRequest", {}).get("Item") or each["DeleteRequest"]["Key"])["SK"]["S"]
            for each in writes
        ]
    return [(params.get("Item") or params["Key"])["SK"]["S"]]


def _step_of_put(call: Call) -> str:
    if call.method == "get_item":
        return "confirm epoch"
    [kind] = {key[:2] for key in _keys(call)}
    if kind == "C#":
        head = {"put_item": "put head", "update_item": "update writes"}
        return head[call.method]
    return {"N#": "register namespace", "S#": "write segments"}[kind]


def _steps(calls: Sequence[str]) -> list[str]:
    """Say each step once, in the order in which they began."""
    return list(dict.fromkeys(calls))


def test_a_put_and_its_writes_are_sent_in_this_order() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 1}))
    put = harness.begin(process.put("2", {"x": BIG}, namespace="inner")).trace()
    before = ["register namespace", "write segments"]
    assert _steps(list(map(_step_of_put, put))) == [*before, "put head", "confirm epoch"]
    writes = harness.begin(process.put_writes("2", [("x", MUCH)], namespace="other")).trace()
    assert _steps(list(map(_step_of_put, writes))) == [*before, "update writes", "confirm epoch"]


def _step_of_renewal(call: Call) -> str:
    [key] = _keys(call)
    if key == "T":
        return "end renewal" if "REMOVE #before" in call.params["UpdateExpression"] else "announce"
    if "#W#" in key:
        return "keep writes"
    return {"N#": "keep marker", "S#": "keep segments", "C#": "keep head"}[key[:2]]


def test_a_renewal_is_sent_in_this_order() -> None:
    harness = Harness()
    process = harness.process(1000)
    harness.run(process.put("1", {"x": BIG}))
    harness.run(process.put_writes("1", [("x", MUCH)], "other"))
    harness.run(process.put("2", {"x": BIG}, namespace="a"))
    harness.now += 990
    calls = harness.begin(process.put_writes("1", [("x", 1)])).trace()
    changes = [each for each in calls if each.method in {"put_item", "update_item"}]
    *renewal, last = map(_step_of_renewal, changes)
    assert _steps(renewal) == [
        "announce",
        "keep segments",
        "keep writes",
        "keep head",
        "keep marker",
        "end renewal",
    ]
    assert last == "keep writes"


def _step_of_deletion(call: Call, has_ended: bool) -> str:
    if call.method in ("query", "batch_get_item"):
        return "read again" if has_ended else "read"
    keys = _keys(call)
    if keys == ["T"]:
        text = str(call.params.get("UpdateExpression", ""))
        names = {"SET #claim": "claim thread", "SET #epoch": "end epoch", "REMOVE #previous": "finalize"}
        return next((step for begins, step in names.items() if text.startswith(begins)), "release thread")
    kinds = {"writes" if "#W#" in key else key[:2] for key in keys}
    if call.method == "update_item":
        return "cut parents" if "REMOVE #parent" in call.params["UpdateExpression"] else "restamp"
    [kind] = kinds
    deleted = {"C#": "delete heads", "S#": "delete segments", "N#": "unregister namespaces"}
    if kind == "writes":
        return "delete abandoned writes" if call.method == "delete_item" else "delete writes"
    return deleted[kind]


def test_a_deletion_is_sent_in_this_order() -> None:
    harness = Harness()
    process = harness.process()
    for number in range(3):
        parent = str(number - 1) if number else None
        harness.run(process.put(str(number), {"x": noise(60_000, number)}, parent, run_id=f"run {number}"))
        harness.run(process.put_writes(str(number), [("x", 1)]))
    harness.run(process.put("0", {"x": 1}, namespace="inner", run_id="run 0"))
    harness.run(process.put_writes("never put", [("x", 1)]))
    harness.now += 4000
    steps = []
    for call in harness.begin(harness.process().delete_for_runs("run 0")).trace():
        if call.params.get("IndexName") is None:
            steps.append(_step_of_deletion(call, "end epoch" in steps))
    assert _steps(steps) == [
        "claim thread",
        "read",
        "cut parents",
        "delete heads",
        "delete writes",
        "end epoch",
        "read again",
        "restamp",
        "finalize",
        "delete abandoned writes",
        "delete segments",
        "unregister namespaces",
        "release thread",
    ]


def _step_of_copy(call: Call) -> str:
    if call.method == "get_item":
        return f"read thread {call.params['Key']['PK']['S']}"
    if _keys(call) == ["T"]:
        return "begin copy" if "SET #epoch" in call.params["UpdateExpression"] else "end copy"
    if any(key.startswith("C#") for key in _keys(call)):
        return "write writes" if "#W#" in _keys(call)[0] else "put heads"
    return _step_of_put(call)


def test_a_copy_is_sent_in_this_order() -> None:
    harness = Harness()
    process = harness.process()
    for number in ("1", "2"):
        harness.run(process.put(number, {"x": BIG}, namespace="inner"))
        harness.run(process.put_writes(number, [("x", 1)], namespace="inner"))
    calls = [
        each
        for each in harness.begin(process.copy_thread("copy")).trace()
        if each.method not in ("query", "batch_get_item")
    ]
    assert [step for step, _ in groupby(map(_step_of_copy, calls))] == [
        f"read thread {THREAD}#",
        "read thread copy#",
        f"read thread {THREAD}#",
        "begin copy",
        "register namespace",
        "write segments",
        "write writes",
        "put heads",
        f"read thread {THREAD}#",
        "end copy",
    ]
