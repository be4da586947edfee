"""The protocol is in one file: nobody else compares epochs, and each change is accepted where it says so."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Part
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.protocol import TRANSITIONS, Change, Thread
from tests.support.harness import TABLE, Harness

FOLDER = Path(package.__file__).parent


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


LATEST, BEFORE, LONG_AGO = b"now", b"before", b"long ago"


@pytest.mark.parametrize(
    ("epoch", "is_pending", "commits", "confirms"),
    [
        (LATEST, False, True, True),
        (LATEST, True, True, False),
        (BEFORE, False, True, False),
        (LONG_AGO, False, False, False),
    ],
)
def test_what_is_committed_and_what_is_confirmed(
    epoch: bytes, is_pending: bool, commits: bool, confirms: bool
) -> None:
    item: items.Item = {items.EPOCH: {"B": LATEST}, items.PREVIOUS: {"BS": [BEFORE]}}
    thread = Thread.parse({**item, items.PENDING: {"BOOL": True}} if is_pending else item)
    assert (thread.commits(epoch), thread.confirms(epoch)) == (commits, confirms)


@pytest.mark.parametrize(
    ("attribute", "is_committed"), [(None, True), (LATEST, True), (BEFORE, True), (LONG_AGO, False)]
)
def test_a_part_without_an_epoch_names_no_segment(attribute: bytes | None, is_committed: bool) -> None:
    thread = Thread.parse({items.EPOCH: {"B": LATEST}, items.PREVIOUS: {"BS": [BEFORE]}})
    writes: items.Item = {} if attribute is None else {"writes_epoch": {"B": attribute}}
    assert protocol.is_committed(writes, items.WRITES, thread) == is_committed
    assert protocol.is_committed(writes, items.WRITES, None) == (attribute is None)


LIFE_OF_NOW, OTHER_LIFE = b"alive", b"other"
FIRST = protocol.first_epoch(LIFE_OF_NOW)
SECOND = protocol.next_epoch(FIRST)
THIRD, MARK = protocol.next_epoch(SECOND), protocol.mark_of(FIRST, b"a token.")
NAMES_NOTHING, NAMES_A_SEGMENT = Part((), (), b"sealed"), Part((bytes(8),), (), b"sealed")


@pytest.mark.parametrize(
    ("epoch", "part", "committed", "restamped", "as_next_parent"),
    [
        (THIRD, NAMES_A_SEGMENT, True, None, None),
        (SECOND, NAMES_A_SEGMENT, True, LIFE_OF_NOW, THIRD),
        (SECOND, NAMES_NOTHING, True, None, THIRD),
        (FIRST, NAMES_A_SEGMENT, False, None, None),
        (FIRST, NAMES_NOTHING, True, None, THIRD),
        (LIFE_OF_NOW, NAMES_A_SEGMENT, True, None, None),
        (LIFE_OF_NOW, NAMES_NOTHING, True, None, None),
        (MARK, NAMES_A_SEGMENT, True, LIFE_OF_NOW, LIFE_OF_NOW),
        (MARK, NAMES_NOTHING, True, LIFE_OF_NOW, LIFE_OF_NOW),
        (OTHER_LIFE, NAMES_A_SEGMENT, False, None, None),
        (protocol.first_epoch(OTHER_LIFE), NAMES_NOTHING, False, None, None),
    ],
)
@pytest.mark.parametrize("names", [items.BODY, items.SEALED_METADATA, items.REBUILT_FROM])
def test_what_a_deletion_settles(
    epoch: bytes,
    part: Part,
    committed: bool,
    restamped: bytes | None,
    as_next_parent: bytes | None,
    names: str,
) -> None:
    """A head depends on the segments of either part, and on the ancestors from which it is rebuilt."""
    head = typed({"epoch": epoch})
    head |= {each: NAMES_NOTHING.attribute("C#1#") for each in (items.BODY, items.SEALED_METADATA)}
    if names != items.REBUILT_FROM:
        head[names] = part.attribute("C#1#")
    elif part is NAMES_A_SEGMENT:
        head[names] = {"S": "0"}
    thread = Thread.parse(typed({"epoch": THIRD, "previous": [SECOND]}))
    assert protocol.is_committed(head, items.BODY, thread) == committed
    for is_next_parent, expected in ((False, restamped), (True, as_next_parent)):
        change = protocol.restamp(head, thread, is_next_parent=is_next_parent)
        assert (change and change.values[":new_epoch"]) == (expected and {"B": expected})
    is_left = protocol.is_settled(epoch) or part is NAMES_NOTHING
    assert protocol.is_passed_over(head, THIRD) == (is_left and protocol.is_of_one_life(epoch, THIRD))


# Each change of `protocol.py`, on each state of an item, and just before, at and just after each bound


NOW, TTL_SECONDS = 1_000_000, 1000
KEPT, WEEK = NOW + 2500, 7 * 24 * 3600
MINE, MORE = b"mine", [b"before"]
ENTRY: items.Item = {"owner": {"S": "bo"}, "about": {"B": b"new"}}
LIFE = items.Life(TTL_SECONDS, NOW + 5, NOW + 7)
Attributes = Mapping[str, Any]

# A thread in use, in the directory, while a deletion holds it.
HELD: Attributes = {
    "epoch": b"epoch",
    "ttl_seconds": TTL_SECONDS,
    "alive_until": NOW + 500,
    "kept_until": KEPT,
    "expires_at": KEPT + WEEK,
    "last_active": NOW - 2000,
    "active_day": "1970-01-12",
    "created_at": NOW - 3000,
    "owner": "ada",
    "about": b"about",
    "claim": MINE,
    "claimed_until": NOW + 60,
}
# How an item differs from that of a case; `None` is an attribute that it lacks.
THREADS: Mapping[str, Attributes] = {
    "pending": {"pending": True},
    "not-pending": {"pending": None},
    "other-epoch": {"epoch": b"other"},
    "copied": {"alive_until": 0, "pending": None},
    "dead-1": {"alive_until": 1},
    "dead-before": {"alive_until": NOW - 1},
    "dead-now": {"alive_until": NOW},
    "alive": {"alive_until": NOW + 1},
    "alive-since": {"alive_until": NOW + 501},
    "used-before": {"alive_until": NOW + TTL_SECONDS - 1},
    "used-now": {"alive_until": NOW + TTL_SECONDS},
    "used-later": {"alive_until": NOW + TTL_SECONDS + 1},
    "no-life": {"alive_until": None},
    "owned": {"owner": "cy"},
    "unowned": {"owner": None},
    "mine": {"claim": MINE},
    "extended": {"claimed_until": NOW + 61},
    "unclaimed": {"claim": None, "claimed_until": None},
    "over": {"claim": b"other", "claimed_until": NOW - 1},
    "held-now": {"claim": b"other", "claimed_until": NOW},
    "held": {"claim": b"other", "claimed_until": NOW + 1},
    "renewing": {"kept_before": NOW},
    "renewed": {"kept_before": None},
    "kept-less": {"kept_until": KEPT - 1},
    "kept-more": {"kept_until": KEPT + 1},
    "listed": {"last_active": NOW - 901},
    "listed-due": {"last_active": NOW - 900},
    "listed-since": {"last_active": NOW - 899},
    "unlisted": {"last_active": None},
    "described": {"about": b"other"},
    "undescribed": {"about": None},
    "ends-before": {"expires_at": NOW + 3599},
    "ends-then": {"expires_at": NOW + 3600},
    "ends-after": {"expires_at": NOW + 3601},
    "endless": {"expires_at": None},
}
IN_LIFE = "copied alive alive-since used-before used-now used-later no-life"
NOT_COPIED = f"dead-1 dead-before dead-now {IN_LIFE.partition(' ')[2]}"
OTHERS = "unclaimed over held-now held"
OF_EPOCH = "absent other-epoch"
_FORMER: Attributes = {"pending": True, "previous": MORE, "kept_before": NOW}
_AFTER: Attributes = dict.fromkeys(_FORMER)
_UNLISTED: Attributes = dict.fromkeys(("last_active", "active_day", "created_at", "owner", "about"))
_ENDLESS: Attributes = dict.fromkeys(("alive_until", "kept_until", "expires_at"))
_TIMES: Attributes = {"alive_until": NOW + 5, "kept_until": NOW + 7, "expires_at": NOW + 7 + WEEK}
_ACTIVE_NOW: Attributes = {"last_active": NOW, "active_day": "1970-01-12"}
_ENTERED: Attributes = {**_ACTIVE_NOW, "created_at": NOW, "owner": "bo", "about": b"new"}
_BEGUN: Attributes = {"epoch": b"new", "alive_until": 0, "ttl_seconds": 0}
_RESET: Attributes = dict.fromkeys(("claim", "claimed_until", "previous", "ttl_seconds", "kept_before"))
_BARE: Attributes = {**dict.fromkeys(HELD), "epoch": b"epoch", "pending": True, "expires_at": NOW}


def typed(attributes: Attributes) -> items.Item:
    """Return attributes as DynamoDB has them."""
    kinds = {bool: "BOOL", int: "N", str: "S", bytes: "B", list: "BS"}
    return {
        name: {kinds[type(value)]: str(value) if type(value) is int else value}
        for name, value in attributes.items()
        if value is not None
    }


def thread(**changed: Any) -> Thread:
    return Thread.parse(typed({**HELD, **changed}))


class Case(NamedTuple):
    """A change, an item that it accepts, what it makes of it, and which other items it refuses."""

    name: str
    change: Callable[[], Change | None]
    item: Attributes | None
    """How it differs; `None`: there is none."""
    result: Attributes | None
    """How it differs from the item; `None`: it is deleted."""
    refused: str
    is_put: bool = False


EVERY = " ".join(THREADS)

# fmt: off
OF_THREADS = [
    Case("create_thread", lambda: protocol.create_thread(b"new", LIFE, NOW + 0.9, ENTRY),
         {**_FORMER, "alive_until": NOW, "owner": None}, {**_AFTER, **_TIMES, **_ENTERED, "epoch": b"new"},
         f"{IN_LIFE} owned"),
    Case("create_thread", lambda: protocol.create_thread(b"new", items.Life(), NOW),
         {**_FORMER, "alive_until": NOW, "owner": None},
         {**_AFTER, **_ENDLESS, **_UNLISTED, "epoch": b"new", "ttl_seconds": 0}, f"{IN_LIFE} owned"),
    Case("begin_anew", lambda: protocol.begin_anew(b"epoch", b"new", LIFE, NOW, is_listed=True),
         {**_FORMER, "alive_until": NOW}, {**_AFTER, **_TIMES, **_ACTIVE_NOW, "epoch": b"new"},
         f"{OF_EPOCH} {IN_LIFE}"),
    Case("begin_anew", lambda: protocol.begin_anew(b"epoch", b"new", items.Life(), NOW, is_listed=False),
         {**_FORMER, "alive_until": NOW}, {**_AFTER, **_ENDLESS, "epoch": b"new", "ttl_seconds": 0},
         f"{OF_EPOCH} {IN_LIFE}"),
    Case("create_pending_thread", lambda: protocol.create_pending_thread(b"new", NOW), None,
         {"epoch": b"new", "pending": True, "expires_at": NOW + 3600}, EVERY),
    Case("begin_epoch", lambda: protocol.begin_epoch(thread(), LIFE, NOW, ENTRY), {"pending": True},
         {"pending": None}, f"{OF_EPOCH} not-pending copied"),
    Case("begin_epoch", lambda: protocol.begin_epoch(thread(**_BARE), LIFE, NOW, ENTRY), _BARE,
         {"pending": None, "ttl_seconds": TTL_SECONDS, **_TIMES, **_ENTERED},
         f"{OF_EPOCH} not-pending copied"),
    Case("begin_epoch", lambda: protocol.begin_epoch(thread(ttl_seconds=None), items.Life(), NOW, ENTRY),
         {"pending": True, "kept_before": NOW, "ttl_seconds": None},
         {"pending": None, "kept_before": None, "ttl_seconds": 0, **_ENDLESS},
         f"{OF_EPOCH} not-pending copied"),
    Case("suspend_epoch", lambda: protocol.suspend_epoch(typed(HELD)), {"previous": MORE},
         {"epoch": b"epoch\0\0\1", "pending": True, "previous": [b"before", b"epoch"]},
         f"{OF_EPOCH} pending copied {NOT_COPIED}"),
    Case("begin_copy", lambda: protocol.begin_copy(typed({**HELD, **_FORMER}), b"new", LIFE, None), _FORMER,
         {**_AFTER, **_TIMES, "epoch": b"new", "alive_until": 0},
         f"{OF_EPOCH} not-pending copied {NOT_COPIED}"),
    Case("begin_copy", lambda: protocol.begin_copy(typed({**HELD, "alive_until": 0}), b"new", LIFE, None),
         {"alive_until": 0}, {**_TIMES, "epoch": b"new", "alive_until": 0}, f"{OF_EPOCH} pending {NOT_COPIED}"),
    Case("begin_copy", lambda: protocol.begin_copy(None, b"new", items.Life(), (ENTRY, NOW, NOW - 1)), None,
         {**_ENTERED, **_BEGUN, "created_at": NOW - 1}, EVERY),
    Case("begin_copy", lambda: protocol.begin_copy(typed(HELD), b"new", items.Life(), ({}, NOW, NOW)), {},
         {**_UNLISTED, **_ENDLESS, **_ACTIVE_NOW, **_BEGUN, "created_at": NOW},
         f"{OF_EPOCH} pending copied {NOT_COPIED}"),
    Case("end_copy", lambda: protocol.end_copy(b"epoch", items.Life(TTL_SECONDS, 0, KEPT), NOW + 5),
         {"alive_until": 0}, {"alive_until": NOW + 5}, f"{OF_EPOCH} pending {NOT_COPIED} kept-less kept-more"),
    Case("end_copy", lambda: protocol.end_copy(b"epoch", items.Life(None, 0), None),
         {"alive_until": 0, "kept_until": None}, {"alive_until": None},
         f"{OF_EPOCH} pending {NOT_COPIED} kept-less kept-more"),
    Case("note_use", lambda: protocol.note_use(thread(), NOW + 0.9), {},
         {"alive_until": NOW + TTL_SECONDS, **_ACTIVE_NOW},
         f"{OF_EPOCH} copied no-life used-now used-later renewing"),
    Case("note_use",
         lambda: protocol.note_use(thread(alive_until=NOW + 9000, last_active=NOW + 100_000), NOW), {},
         {"alive_until": NOW + 9000, "last_active": NOW + 100_000, "active_day": "1970-01-13"},
         f"{OF_EPOCH} copied no-life renewing"),
    Case("note_use", lambda: protocol.note_use(thread(last_active=None), NOW), {},
         {"alive_until": NOW + TTL_SECONDS}, f"{OF_EPOCH} copied no-life used-now used-later renewing"),
    Case("begin_renewal", lambda: protocol.begin_renewal(thread(), KEPT + 9), {},
         {"kept_until": KEPT + 9, "kept_before": KEPT, "expires_at": KEPT + 9 + WEEK},
         f"{OF_EPOCH} kept-less kept-more renewing"),
    Case("end_renewal", lambda: protocol.end_renewal(thread(), NOW + 2150, NOW + 0.9),
         {"kept_before": NOW, "kept_until": NOW + 2150},
         {"kept_before": None, "alive_until": NOW + TTL_SECONDS, **_ACTIVE_NOW},
         f"{OF_EPOCH} copied no-life used-later renewed kept-less kept-more"),
    Case("end_renewal", lambda: protocol.end_renewal(thread(), NOW + 2149, NOW),
         {"kept_before": NOW, "kept_until": NOW + 2149}, {"kept_before": None},
         f"{OF_EPOCH} copied no-life alive-since used-before used-now used-later renewed kept-less kept-more"),
    Case("list_thread", lambda: protocol.list_thread(b"epoch", ENTRY, NOW, NOW - 1), {"last_active": None},
         {**_ENTERED, "created_at": NOW - 1}, f"{OF_EPOCH} listed listed-due listed-since"),
    Case("touch_thread", lambda: protocol.touch_thread(b"epoch", NOW, NOW - 900), {}, _ACTIVE_NOW,
         f"{OF_EPOCH} unlisted listed-since"),
    Case("describe_thread", lambda: protocol.describe_thread(b"epoch", ENTRY, typed(HELD)), {},
         {"owner": "bo", "about": b"new"}, f"{OF_EPOCH} unlisted described undescribed"),
    Case("describe_thread", lambda: protocol.describe_thread(b"epoch", {}, {}), {"about": None},
         {"owner": None}, f"{OF_EPOCH} unlisted described"),
    Case("claim_thread", lambda: protocol.claim_thread(MINE, NOW + 0.9),
         {"claim": None, "claimed_until": None}, {"claim": MINE, "claimed_until": NOW + 120},
         "absent held held-now"),
    Case("extend_claimed_thread", lambda: protocol.extend_claimed_thread(MINE, NOW + 3600),
         {"expires_at": NOW}, {"expires_at": NOW + 3600}, f"absent {OTHERS} ends-then ends-after endless"),
    Case("reset_thread", lambda: protocol.reset_thread(typed(HELD), b"new"),
         {"previous": MORE, "kept_before": NOW}, {**_ENDLESS, **_RESET, "epoch": b"new", "pending": True},
         f"{OF_EPOCH} extended {OTHERS}"),
    Case("reset_thread", lambda: protocol.reset_thread(typed({}), b"new"),
         {**_BARE, "epoch": None, "expires_at": None, "owner": "ada"}, {"epoch": b"new"},
         f"{OF_EPOCH} mine extended over held held-now"),
    Case("end_epoch", lambda: protocol.end_epoch(MINE, b"epoch", b"new", NOW), {"previous": MORE},
         {"epoch": b"new", "pending": True, "claimed_until": NOW + 120, "previous": [b"before", b"epoch"]},
         f"{OF_EPOCH} {OTHERS}"),
    Case("finalize", lambda: protocol.finalize(MINE, b"epoch", stays_pending=False),
         {"pending": True, "previous": MORE}, {"pending": None, "previous": None}, f"{OF_EPOCH} {OTHERS}"),
    Case("finalize_pending", lambda: protocol.finalize(MINE, b"epoch", stays_pending=True),
         {"pending": True, "previous": MORE}, {"previous": None}, f"{OF_EPOCH} {OTHERS}"),
    Case("release_thread", lambda: protocol.release_thread(MINE), {}, {"claim": None, "claimed_until": None},
         f"absent {OTHERS}"),
    Case("remove_thread", lambda: protocol.remove_thread(MINE), {"pending": True}, None,
         f"absent {OTHERS} not-pending copied"),
]
# fmt: on

# An item of a task, which stands for all that is no thread item.
STORED: Attributes = {
    "epoch": b"epoch",
    "body": b"body",
    "parent": "parent",
    "writes": b"writes",
    "writes_epoch": b"before",
    "special_1": b"special",
    "special_1_epoch": b"gone",
    "order": 5,
    "created_at": NOW,
    "registered": b"registered",
    "expires_at": NOW + 500,
}
STORED_ITEMS: Mapping[str, Attributes] = {
    "other-epoch": {"epoch": b"other"},
    "no-epoch": {"epoch": None},
    "other-body": {"body": b"other"},
    "no-body": {"body": None},
    "other-writes": {"writes": b"other"},
    "no-writes": {"writes": None},
    "other-writes-epoch": {"writes_epoch": b"other"},
    "other-special": {"special_1": b"other"},
    "other-special-epoch": {"special_1_epoch": b"other"},
    "more-special": {"special_2": b"other"},
    "more-sealed": {"sealed_metadata": b"other"},
    "order-before": {"order": 4},
    "order-after": {"order": 6},
    "no-order": {"order": None},
    "created-before": {"created_at": NOW - 1},
    "not-created": {"created_at": None},
    "registered-again": {"registered": b"other"},
    "not-registered": {"registered": None},
    "ends-before": {"expires_at": NOW + 499},
    "ends-after": {"expires_at": NOW + 501},
    "endless": {"expires_at": None},
    "shown": {"shown_until": NOW},
}
PARTS = "other-body no-body other-writes no-writes other-special more-special more-sealed"
NEW_WRITES = typed({"writes": b"new", "created_at": NOW + 1})
SPECIAL = typed({"special_1": b"new", "special_1_epoch": b"epoch"})
DELETING = Thread.parse(typed({**HELD, "epoch": b"new", "previous": [b"epoch", b"before"]}))

# fmt: off
OF_OTHERS = [
    Case("put_head", lambda: protocol.put_head(typed(STORED)), {}, {},
         "other-epoch ends-before ends-after endless", is_put=True),
    Case("put_head", protocol.put_head, None, STORED, " ".join({*STORED_ITEMS} - {"no-epoch"}), is_put=True),
    Case("mark_head", lambda: protocol.mark_head(typed(STORED), b"mark"), {}, {"epoch": b"mark"},
         f"{OF_EPOCH} no-epoch {PARTS}"),
    Case("restamp", lambda: protocol.restamp(typed(STORED), DELETING, is_next_parent=False), {},
         {"epoch": b"new", "writes_epoch": b"new"}, f"{OF_EPOCH} no-epoch other-writes-epoch {PARTS}"),
    Case("cut_parent", lambda: protocol.cut_parent(typed(STORED)), {}, {"parent": None},
         f"{OF_EPOCH} no-epoch"),
    Case("set_writes",
         lambda: protocol.set_writes(NEW_WRITES, typed(STORED), kept_until=NOW + 500, order=None), {},
         {"writes": b"new", "created_at": NOW + 1},
         "other-writes no-writes ends-before ends-after endless absent"),
    Case("set_writes", lambda: protocol.set_writes(NEW_WRITES, {}, kept_until=NOW + 500, order=6),
         {"writes": None}, {"writes": b"new", "created_at": NOW + 1},
         "other-writes ends-before ends-after endless order-after"),
    Case("set_writes", lambda: protocol.set_writes(NEW_WRITES, {}, kept_until=NOW + 500, order=None), None,
         {"writes": b"new", "created_at": NOW + 1, "expires_at": NOW + 500},
         " ".join(each for each in STORED_ITEMS if each != "no-writes")),
    Case("set_writes", lambda: protocol.set_writes(SPECIAL, typed(STORED), kept_until=None, order=5),
         {"expires_at": None, "order": 4}, {"special_1": b"new", "special_1_epoch": b"epoch"},
         "ends-before ends-after order-after"),
    Case("replace_writes", lambda: protocol.replace_writes(typed(STORED)), {}, {},
         "absent created-before not-created ends-before ends-after endless", is_put=True),
    Case("copy_writes", lambda: protocol.copy_writes(typed(STORED)), {}, {},
         f"{OF_EPOCH} no-epoch other-writes-epoch other-special-epoch {PARTS} created-before not-created"
         " ends-before ends-after endless", is_put=True),
    Case("copy_writes", protocol.copy_writes, None, STORED, " ".join({*STORED_ITEMS} - {"not-created"}),
         is_put=True),
    Case("delete_as_read", lambda: protocol.delete_as_read(typed(STORED)), {}, None,
         f"{OF_EPOCH} no-epoch other-writes-epoch other-special-epoch created-before not-created"),
    Case("touch_writes", lambda: protocol.touch_writes(NOW + 7), {}, {"created_at": NOW + 7}, "absent"),
    Case("delete_untouched", lambda: protocol.delete_untouched(typed(STORED)), {}, None,
         "absent created-before not-created"),
    Case("delete_untouched", lambda: protocol.delete_untouched({}), {"created_at": None}, None,
         "created-before"),
    Case("register", lambda: protocol.register(b"om", None), {"registered": b"old"},
         {"registered": b"registered"}, "registered-again", is_put=True),
    Case("register", lambda: protocol.register(b"om", NOW + 500), {"registered": b"old"},
         {"registered": b"registered"}, "registered-again ends-after endless", is_put=True),
    Case("register_again", lambda: protocol.register_again(NOW + 501, b"again"), {},
         {"expires_at": NOW + 501, "registered": b"again"}, "absent ends-after endless"),
    Case("unregister", lambda: protocol.unregister(typed(STORED)), {}, None,
         "absent registered-again not-registered"),
    Case("extend", lambda: protocol.extend(None), {}, {"expires_at": None}, "absent endless"),
    Case("extend", lambda: protocol.extend(NOW + 501), {}, {"expires_at": NOW + 501},
         "absent ends-after endless"),
    Case("extend_ancestor", lambda: protocol.extend_ancestor(typed(STORED), NOW + 501), {},
         {"expires_at": NOW + 501, "shown_until": NOW + 500}, "absent ends-after endless"),
    Case("extend_ancestor", lambda: protocol.extend_ancestor(typed(STORED), NOW + 501),
         {"shown_until": NOW + 7}, {"expires_at": NOW + 501}, "absent ends-after endless"),
    Case("renew", lambda: protocol.renew(typed(STORED), NOW + 501), {}, {"expires_at": NOW + 501},
         f"{OF_EPOCH} no-epoch other-writes-epoch other-special-epoch {PARTS} ends-after endless"),
    Case("renew", lambda: protocol.renew(typed(STORED), NOW + 500), {"shown_until": NOW + 7},
         {"shown_until": None}, f"{OF_EPOCH} no-epoch other-writes-epoch other-special-epoch {PARTS}"),
]
# fmt: on

KEY = items.key("t#", "T")


def outcome(case: Case, found: Attributes | None) -> items.Item | None:
    """Return the item as it is after the change, without its key; the key alone if the change was refused."""
    harness, table, change = Harness(), Table(TABLE), case.change()
    if found is not None:
        harness.model.load([{**KEY, **typed(found)}])
    assert change is not None
    if case.is_put:
        refused = harness.run(table.try_put({**KEY, **typed(STORED)}, change))
    elif change.expression:
        refused = harness.run(table.try_update(KEY, change))
    else:
        refused = harness.run(table.try_delete(KEY, change))
    left = harness.model.items()
    if refused is not None:
        return KEY
    return {name: value for name, value in left[0].items() if name not in KEY} if left else None


def variants(case: Case, of: Attributes, others: Mapping[str, Attributes]) -> dict[str, Attributes | None]:
    """Return the items that a change meets, by name; the first is what it was made for."""
    base = {**of, **(case.item or {})}
    own = None if case.item is None else base
    return {"own": own, "absent": None, **{name: {**base, **each} for name, each in others.items()}}


EACH_CASE = [
    pytest.param(case, of, others, id=f"{case.name}-{number}")
    for cases, of, others in ((OF_THREADS, HELD, THREADS), (OF_OTHERS, STORED, STORED_ITEMS))
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("case", "of", "others"), EACH_CASE)
def test_a_change_is_accepted_where_the_protocol_says_so(
    case: Case, of: Attributes, others: Mapping[str, Attributes]
) -> None:
    met = variants(case, of, others)
    refused = {name for name, each in met.items() if outcome(case, each) == KEY}
    assert refused == set(case.refused.split())
    own = met["own"] or {}
    assert outcome(case, met["own"]) == (None if case.result is None else typed({**own, **case.result}))


def state(found: Attributes | None) -> str:
    if found is None:
        return protocol.ABSENT
    if found.get("pending"):
        return protocol.PENDING
    return protocol.COPIED if found.get("alive_until") == 0 else protocol.ACTIVE


def test_each_transition_leads_from_and_to_the_states_of_its_row() -> None:
    assert {each.name for each in OF_THREADS} == {each.change for each in TRANSITIONS}
    for row in TRANSITIONS:
        before, after = set[str](), set[str | None]()
        for case in (each for each in OF_THREADS if each.name == row.change):
            met = variants(case, HELD, THREADS)
            before |= {state(each) for name, each in met.items() if name not in case.refused.split()}
            own = met["own"]
            result = None if case.result is None else {**(own or {}), **case.result}
            after |= {state(result)} if row.after or state(result) != state(own) else {None}
        assert (before, after) == ({*row.before}, {row.after}), row.change


# Questions, just before, at and just after each bound


@pytest.mark.parametrize(
    ("ask", "answers"),
    [
        (lambda at: thread(alive_until=at).is_alive(NOW), [False, False, True]),
        (lambda at: thread(alive_until=1).is_alive(NOW), [False] * 3),
        (lambda at: thread(alive_until=None).is_alive(NOW), [True] * 3),
        (lambda at: thread(kept_until=at).may_live_on(NOW), [False, False, True]),
        (lambda at: thread(kept_until=None).may_live_on(NOW), [False] * 3),
        (lambda at: thread(kept_until=KEPT, kept_before=at).may_live_on(NOW), [False, False, True]),
        (lambda at: thread(alive_until=0).may_live_on(at), [False] * 3),
        (lambda at: thread(kept_until=at + 2150).needs_renewal(NOW), [True, False, False]),
        (lambda at: thread(kept_until=NOW + 2150).needs_renewal(at + 0.9), [False, False, True]),
        (lambda at: thread(kept_before=at + 9000).needs_renewal(NOW), [True] * 3),
        (lambda at: thread(ttl_seconds=0, kept_until=at).needs_renewal(NOW), [True, False, False]),
        (lambda at: protocol.is_orphan(typed({"created_at": at - 3600}), NOW), [True, False, False]),
        (lambda at: protocol.is_orphan({}, NOW), [True] * 3),
        (
            lambda at: protocol.is_of_former_life(
                typed({"created_at": at - 3600, "expires_at": NOW}), items.Life(1000, None, NOW)
            ),
            [True, False, False],
        ),
        (
            lambda at: protocol.is_of_former_life(
                typed({"created_at": NOW, "expires_at": at}), items.Life(1000, None, NOW)
            ),
            [False, False, True],
        ),
        (
            lambda _: protocol.is_of_former_life(typed({"created_at": NOW}), items.Life(1000, None, NOW)),
            [True] * 3,
        ),
        (lambda at: protocol.is_of_former_life(typed({"expires_at": at}), items.Life()), [True] * 3),
        (lambda at: protocol.is_of_former_life(typed({"created_at": at}), items.Life()), [False] * 3),
        (lambda at: protocol.is_too_late(NOW - 900, at), [False, False, True]),
        (lambda at: protocol.new_life(None, at), [items.Life()] * 3),
        (
            lambda at: protocol.new_life(TTL_SECONDS, at + 0.9),
            [items.Life(TTL_SECONDS, each + 1000, each + 3100) for each in (NOW - 1, NOW, NOW + 1)],
        ),
        (lambda at: protocol.day_of((at - NOW) + 24 * 3600), ["1970-01-01", "1970-01-02", "1970-01-02"]),
    ],
)
def test_a_question_changes_its_answer_at_its_bound(ask: Callable[[int], Any], answers: list[Any]) -> None:
    assert [ask(at) for at in (NOW - 1, NOW, NOW + 1)] == answers


def test_a_deletion_reads_a_thread_whose_life_is_damaged() -> None:
    item = KEY | typed({**HELD, "alive_until": "x", "kept_until": "x", "ttl_seconds": "x", "expires_at": "x"})
    found = Thread.parse_for_deletion(item)
    assert (found.epoch, found.claim, found.has_ttl, found.expires_at) == (b"epoch", MINE, True, None)
    assert not Thread.parse_for_deletion(typed({**HELD, "ttl_seconds": None})).has_ttl
    assert Thread.parse_for_deletion(typed(HELD)).expires_at == KEPT + WEEK


def test_the_tokens_of_a_marker_rise() -> None:
    first = protocol.registration(NOW, b"\xff\xff")
    assert protocol.registration(NOW + 0.001, bytes(2), first) == protocol.registration(NOW + 0.001, bytes(2))
    assert len(first) == len(protocol.registration(NOW + 0.001, bytes(2))) == 8
    assert first < protocol.registration(NOW + 0.001, bytes(2))
    # A clock may be behind, and the random bytes lower or the same.
    for now, random_bytes in ((NOW - 15, b"\xff\xff"), (NOW, bytes(2)), (NOW, b"\xff\xff")):
        assert (
            first < protocol.registration(now, random_bytes, first) < protocol.registration(NOW + 1, bytes(2))
        )


def test_an_epoch_ends_once() -> None:
    ended = thread().ended(b"new")
    assert (ended.epoch, ended.is_pending, ended.previous) == (b"new", True, frozenset({b"epoch"}))
    assert ended.was_ended(MINE, b"epoch")
    assert not ended.was_ended(b"other", b"epoch")
    assert not ended.was_ended(MINE, b"new")
    assert thread(previous=[b"before"]).ended(b"new").previous == {b"epoch", b"before"}
    assert protocol.is_reusable(b"a", b"a")
    assert not protocol.is_reusable(b"a", b"b")
    assert not protocol.is_reusable(None, None)


@pytest.mark.parametrize("kept_until", [NOW + 500, None])
@pytest.mark.parametrize(
    ("ends_at", "copied", "own", "own_of_hidden"),
    [(NOW + 499, True, False, True), (NOW + 500, True, False, None), (NOW + 501, None, False, None)],
)
def test_a_copy_replaces_what_was_copied_and_in_a_hidden_thread_what_ends_before(
    kept_until: int | None, ends_at: int, copied: bool | None, own: bool, own_of_hidden: bool | None
) -> None:
    """`None`: if the copy is kept for ever."""
    is_endless = kept_until is None
    for created_at, is_hidden, expected in (
        (-NOW, False, copied),
        (-NOW, True, copied),
        (NOW, False, own),
        (NOW, True, own_of_hidden),
    ):
        writes = typed({"created_at": created_at, "expires_at": ends_at})
        found = protocol.may_copy_over(writes, kept_until, is_hidden=is_hidden)
        assert found == (is_endless if expected is None else expected)


@pytest.mark.parametrize("is_hidden", [True, False])
@pytest.mark.parametrize("created_at", [-NOW, NOW])
def test_a_copy_replaces_what_is_kept_for_ever_only_as_such(created_at: int, is_hidden: bool) -> None:
    writes = typed({"created_at": created_at})
    assert not protocol.may_copy_over(writes, NOW, is_hidden=is_hidden)
    assert protocol.may_copy_over(writes, None, is_hidden=is_hidden) == (created_at < 0)
