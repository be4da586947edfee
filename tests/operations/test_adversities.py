"""Sequences that a review found to go wrong, each of which has to go right for good."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Outcome, Step
from tests.support.change import change_storage
from tests.support.checkpoints import Conversation, all_items, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]

pytestmark = pytest.mark.engines("dynamodb-local")


def _put_interrupted_after_its_commit(
    saver: DynamoDBSaver, arguments: tuple[Any, ...], meanwhile: Callable[[], None]
) -> None:
    """Run a put, and something else between the first commit of its head and its look at the thread."""
    commits = 0
    for steps, go_on in _rounds(saver, put(saver.storage, *arguments)):
        go_on()
        if any(getattr(step, "method", "") == "put_item" for step in steps):
            commits += 1
            if commits == 1:
                meanwhile()


def _rounds(saver: DynamoDBSaver, operation: Any) -> Iterator[tuple[Any, Callable[[], None]]]:
    """Give each round of an operation, and what performs it."""
    outcomes: list[Any] = [None]

    def go_on() -> None:
        outcomes[0] = saver.runner.run(_round(steps))

    while True:
        try:
            steps = operation.send(outcomes[0])
        except StopIteration:
            return
        yield steps, go_on


def _round(steps: Sequence[Step]) -> Op[Sequence[Outcome]]:
    """Ask for one round, and return its outcomes."""
    return (yield steps)


def _params(steps: Any) -> dict[str, Any]:
    """The parameters of a round's first request."""
    return getattr(steps[0], "params", {})


def _perform(rounds: Iterator[tuple[Any, Callable[[], None]]]) -> None:
    """Perform the rounds that are left."""
    for _steps, go_on in rounds:
        go_on()


def _perform_until(rounds: Iterator[tuple[Any, Callable[[], None]]], text: str) -> None:
    """Perform rounds, the last of them the first with such a parameter."""
    for steps, go_on in rounds:
        go_on()
        if text in str(_params(steps)):
            return
    pytest.fail(f"no request has {text}")


def test_a_put_keeps_what_it_inherited_when_its_parent_is_pruned_before_it_looks(
    make_saver: MakeSaver,
) -> None:
    saver = make_saver()
    conversation = Conversation(saver, "t")
    snapshot = _DeltaSnapshot(["x" * 200 for _ in range(300)])
    conversation.put(log=snapshot, count=0)
    del conversation.values["log"]
    config, checkpoint, metadata, versions = conversation.change(count=1)
    metadata["counters_since_delta_snapshot"] = {"log": (0, 1)}
    arguments = (config, checkpoint, metadata, versions)
    _put_interrupted_after_its_commit(saver, arguments, lambda: make_saver().prune(["t"]))
    stored = stored_values(make_saver(), thread_config("t"))
    assert stored == {"log": snapshot, "count": 1}


def test_a_put_does_not_bring_back_the_link_to_a_parent_that_was_pruned(make_saver: MakeSaver) -> None:
    saver = make_saver()
    conversation = Conversation(saver, "t")
    conversation.put(count=0)
    arguments = conversation.change(count=1)
    _put_interrupted_after_its_commit(saver, arguments, lambda: make_saver().prune(["t"]))
    found = make_saver().get_tuple(thread_config("t"))
    assert found is not None
    assert found.parent_config is None
    assert found.checkpoint["channel_values"] == {"count": 1}


@pytest.mark.parametrize("later", ["nothing", "another deletion"])
def test_pruning_does_not_count_a_checkpoint_that_was_never_acknowledged(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, later: str
) -> None:
    """A head may have lost its segments to a deletion, and its process died before it could store them again."""
    conversation = Conversation(make_saver(), "t")
    conversation.put(text="old")
    acknowledged = conversation.put(text="new " * 10_000)
    before = {item["SK"]["S"] for item in all_items(client, table_name, begins="S#")}
    torn = conversation.put(text=[os.urandom(20_000)])
    for item in all_items(client, table_name, begins="S#"):
        if item["SK"]["S"] not in before:
            client.delete_item(TableName=table_name, Key={name: item[name] for name in ("PK", "SK")})
    client.update_item(
        TableName=table_name,
        Key={"PK": {"S": "t#"}, "SK": {"S": f"C#{torn['configurable']['checkpoint_id']}#"}},
        UpdateExpression="SET epoch = :other",
        ExpressionAttributeValues={":other": {"B": os.urandom(8)}},
    )

    make_saver().prune(["t"], strategy="keep_latest")
    if later == "another deletion":
        make_saver().prune(["t"], strategy="keep_latest")
    found = make_saver().get_tuple(thread_config("t"))
    assert found is not None
    assert found.config == acknowledged
    assert found.checkpoint["channel_values"] == {"text": "new " * 10_000}


@pytest.mark.parametrize("strategy", ["delete", "keep_latest"])
def test_a_checkpoint_put_during_a_deletion_has_the_threads_epoch_after_it(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, strategy: str
) -> None:
    """Also one that is put after the deletion has seen that nothing is left, and before it removes the thread item."""
    saver = make_saver()
    survived = list[int]()
    for interrupted_at in count():
        thread_id = f"t{interrupted_at}"
        Conversation(make_saver(), thread_id).put(text="before")
        rounds = 0
        for _steps, go_on in _rounds(saver, prune(saver.storage, [thread_id], strategy, None)):
            if rounds == interrupted_at:
                late = Conversation(make_saver(), thread_id).put(text="meanwhile")
            rounds += 1
            go_on()
        if interrupted_at >= rounds:
            break
        found = make_saver().get_tuple(late)
        if found is not None:
            survived.append(interrupted_at)
            epochs = {
                item["SK"]["S"]: bytes(item["epoch"]["B"])
                for item in all_items(client, table_name)
                if item["PK"]["S"] == f"{thread_id}#" and "epoch" in item
            }
            assert epochs[f"C#{late['configurable']['checkpoint_id']}#"] == epochs["T"]
    assert rounds - 1 in survived


@pytest.mark.parametrize("strategy", ["delete", "keep_latest"])
def test_an_epoch_that_ended_does_not_come_back_with_a_request_that_is_sent_again(
    make_saver: MakeSaver, strategy: str
) -> None:
    """The first request of a thread was carried out, its answer lost; it is repeated while a deletion is going on."""
    first, second, deleting = make_saver(), make_saver(), make_saver()
    arguments = Conversation(first, "t").change(text="first")
    _, create_thread = next(_rounds(first, put(first.storage, *arguments)))
    create_thread()
    conversation = Conversation(second, "t")
    parent = conversation.put(text="old " * 10_000)
    conversation.put(text="new")
    conversation.config, conversation.values, conversation.versions = (
        parent,
        {"text": "old " * 10_000},
        {"text": 1},
    )
    fork = _rounds(second, put(second.storage, *conversation.change(count=1)))
    for steps, commit in fork:
        if "Item" in _params(steps):
            break
        commit()

    deletion = _rounds(deleting, prune(deleting.storage, ["t"], strategy, None))
    _perform_until(deletion, ":ended")
    _, read_again = next(deletion)
    read_again()
    create_thread()
    commit()
    _perform(fork)
    _perform(deletion)
    assert stored_values(make_saver(), thread_config("t")) == {"text": "old " * 10_000, "count": 1}


def test_a_checkpoint_in_a_namespace_that_is_new_to_a_deletion_has_the_threads_epoch(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver = make_saver()
    Conversation(saver, "t").put(text="root")
    rounds = _rounds(saver, delete_thread(saver.storage, "t"))
    _perform_until(rounds, "N#")
    Conversation(make_saver(), "t", "inner").put(text="inner")
    _perform(rounds)
    epochs = {item["SK"]["S"][:2]: item.get("epoch") for item in all_items(client, table_name)}
    assert epochs.keys() == {"C#", "N#", "T"}
    assert epochs["C#"] == epochs["T"]
    assert stored_values(make_saver(), thread_config("t", "inner")) == {"text": "inner"}


@pytest.mark.parametrize("how", ["prune", "delete_for_runs", "delete_thread"])
def test_the_last_deletion_of_a_thread_takes_its_item(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, how: str
) -> None:
    """Also where what it found were only writes, for long without a checkpoint."""
    saver = make_saver()
    config = Conversation(saver, "t").put(text="root")
    make_saver().delete_thread("t")
    saver.put_writes(config, [("text", "late")], "task")
    if how == "delete_for_runs":
        conversation = Conversation(make_saver(), "t")
        arguments = conversation.change(text="run")
        arguments[2]["run_id"] = "run"
        conversation.saver.put(*arguments)
    later = make_saver()
    change_storage(later, clock=lambda: time.time() + 2 * ORPHAN_SECONDS)
    {
        "prune": lambda: later.prune(["t"]),
        "delete_for_runs": lambda: later.delete_for_runs(["run"]),
        "delete_thread": lambda: later.delete_thread("t"),
    }[how]()
    assert all_items(client, table_name) == []


def test_of_heads_that_readers_may_pass_over_a_deletion_takes_the_newest_last(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver = make_saver()
    conversation = Conversation(saver, "t")
    keys = [f"C#{conversation.put(count=number)['configurable']['checkpoint_id']}#" for number in range(5)]
    for key in keys[-2:]:
        client.update_item(
            TableName=table_name,
            Key={"PK": {"S": "t#"}, "SK": {"S": key}},
            UpdateExpression="SET epoch = :other",
            ExpressionAttributeValues={":other": {"B": os.urandom(8)}},
        )
    left = list[int]()
    for _steps, go_on in _rounds(saver, delete_thread(saver.storage, "t")):
        go_on()
        found = [item["SK"]["S"] for item in all_items(client, table_name, begins="C#")]
        assert found in ([], keys, keys[-len(found) :])
        left.append(len(found))
    assert sorted(set(left)) == [0, 1, 2, 3, 5]


def test_pruning_and_deleting_need_no_key(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    conversation = Conversation(make_saver(serde=serde), "t")
    value = os.urandom(800_000)
    conversation.put(documents=value)
    conversation.put(documents=value + b"more")
    without_key = make_saver()
    with pytest.raises(CheckpointerConfigurationError, match="EncryptedSerializer"):
        without_key.get_tuple(thread_config("t"))
    without_key.prune(["t"])
    reader = make_saver(serde=serde)
    assert stored_values(reader, thread_config("t")) == {"documents": value + b"more"}
    without_key.delete_thread("t")
    assert all_items(client, table_name) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_has_clients_and_threads_of_its_own(make_saver: MakeSaver) -> None:
    saver = make_saver()
    Conversation(saver, "t").put(documents=os.urandom(800_000))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            Conversation(saver, "u").put(documents=os.urandom(800_000))
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert saver.get_tuple(thread_config("u")) is not None


def test_late_writes_of_a_namespace_whose_thread_was_deleted_are_found_by_the_next_deletion(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver = make_saver()
    config = Conversation(saver, "t", "sub:1").put(count=0)
    saver.put_writes(config, [("count", 1)], "task")
    make_saver().delete_thread("t")
    assert all_items(client, table_name) == []
    saver.put_writes(config, [("count", 2)], "task")
    make_saver().delete_thread("t")
    assert all_items(client, table_name) == []


def test_a_new_process_does_not_renew_a_fresh_history(make_saver: MakeSaver) -> None:
    first = make_saver(ttl_seconds=86_400)
    conversation = Conversation(first, "t")

    def step(saver: DynamoDBSaver) -> None:
        config, checkpoint, metadata, versions = conversation.change(log=None)
        del checkpoint["channel_values"]["log"]
        metadata["counters_since_delta_snapshot"] = {"log": (1, 1)}
        conversation.config = saver.put(config, checkpoint, metadata, versions)

    for _ in range(10):
        step(first)
    saver, calls = make_saver(ttl_seconds=86_400), list[str]()
    saver.get_tuple(thread_config("t"))
    saver.transport.client().meta.events.register(
        "after-call.dynamodb", lambda model, **_: calls.append(model.name)
    )
    step(saver)
    assert "UpdateItem" not in calls


def test_ids_at_the_end_of_unicode_are_found(make_saver: MakeSaver) -> None:
    saver = make_saver()
    config, checkpoint, metadata, versions = Conversation(saver, "t").change(count=1)
    checkpoint["id"] = "\U0010ffff\U0010ffff"
    saver.put(config, checkpoint, metadata, versions)
    assert stored_values(saver, thread_config("t")) == {"count": 1}
    assert len(list(saver.list(thread_config("t"), limit=2**31 - 1))) == 1
