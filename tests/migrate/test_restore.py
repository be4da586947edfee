"""One thread out of a restored table: whole, what was there kept, and never a mixture, wherever it is broken off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointNotFoundError,
    DynamoDBSaver,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb.migrate import Prospect, Restoration, TableEndpoint, stored_thread
from tests.migrate.tables import LIVE, NOTHING, RESTORED, PowerCutError, Tables, deaths
from tests.migrate.threads import WAITING, answer, begin, config
from tests.support import graphs
from tests.support.checkpoints import Conversation, all_items, noise, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

on_dynamodb_local = pytest.mark.engines("dynamodb-local")
KEPT = f"t.before-{RESTORED}"


# In memory, where it can be broken off at each request


def restoration(tables: Tables, requests_left: int = 1_000_000, **options: Any) -> Restoration:
    """Give the restoration of the thread in a new process."""
    return Restoration(TableEndpoint(tables.saver(requests_left)), RESTORED, "t", **options)


@pytest.fixture(scope="module")
def damaged() -> Tables:
    """Give a thread that was answered wrongly after the point in time, at which a subgraph of a subgraph asked."""
    tables = Tables()
    build, start = WAITING["subgraphs"]
    build(tables.saver()).invoke(start, config("t"))
    tables.restore()
    build(tables.saver()).invoke(Command(resume="a bad answer"), config("t"))
    return tables


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.search), 8])
def test_whatever_request_it_dies_before_readers_see_one_thread_and_the_next_attempt_ends_well(
    damaged: Tables, step: int
) -> None:
    before = damaged.seen()
    assert "answered a bad answer" in before[0]["log"]
    outcomes = dict[int, Any]()
    for requests, tables in deaths(damaged, lambda *cut: restoration(*cut).run(), count(step=step)):
        outcomes[requests] = tables.seen()
        # At no time is what was there only half there.
        assert before in (tables.seen(), tables.seen(KEPT))
        tables.now += 300
        restoration(tables).run()
        assert (tables.seen(), tables.seen(KEPT)) == (damaged.restored, before)
    assert max(outcomes) > 40
    # Some died before the thread went, some while there was none, and some with the restored one half copied.
    states = (before, NOTHING, damaged.restored)
    assert [each for each in states if each not in outcomes.values()] == []
    assert [each for each in outcomes.values() if each not in states] == []


def test_it_may_die_again_and_again(damaged: Tables) -> None:
    tables, before = damaged.copied(), damaged.seen()
    for requests in (70, 25, 60, 40, 55, 30, 80):
        with pytest.raises(PowerCutError):
            restoration(tables, requests).run()
        tables.now += 300
    restoration(tables).run()
    assert (tables.seen(), tables.seen(KEPT)) == (damaged.restored, before)
    assert restoration(tables).look().is_restored


def test_what_an_earlier_attempt_kept_is_named_by_the_one_that_ends(damaged: Tables) -> None:
    tables = damaged.copied()
    restoration(tables).run()
    oldest = min((each for each in tables.models[LIVE].items() if each["PK"]["S"] == "t#"), key=_sort_key)
    key = {name: oldest[name] for name in ("PK", "SK")}
    tables.models[LIVE].handle("delete_item", {"TableName": LIVE, "Key": key})
    # A part of the restored thread, of which nothing need be kept.
    assert restoration(tables).look().kept_as is None
    assert restoration(tables).run().kept_as == KEPT
    assert restoration(tables).look().is_restored


def _sort_key(item: Any) -> str:
    key: str = item["SK"]["S"]
    return key


def test_a_runner_that_takes_the_lock_is_kept_out_and_keeps_it_out(
    damaged: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = damaged.copied()
    monkeypatch.setattr(stored_thread, "LOCK_WAIT_SECONDS", 0.0)
    with tables.saver().thread_lock("t"), pytest.raises(ThreadBusyError, match="held by another runner"):
        restoration(tables).run()
    assert tables.seen() == damaged.seen()
    store = TableEndpoint(tables.saver())
    attempt = Restoration(store, RESTORED, "t")
    copying = store.copy

    def copy(*arguments: Any) -> None:
        with pytest.raises(ThreadBusyError), tables.saver().thread_lock("t"):
            raise AssertionError
        copying(*arguments)

    monkeypatch.setattr(store, "copy", copy)
    attempt.run()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_runner_without_the_lock_is_told_of(
    damaged: Tables, monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    """It stores something after the thread was kept, or after it was restored."""
    tables = damaged.copied()
    store = TableEndpoint(tables.saver())
    attempt = Restoration(store, RESTORED, "t")
    copying, made = store.copy, list[str]()

    def copy(source: TableEndpoint, source_id: str, target_id: str) -> None:
        copying(source, source_id, target_id)
        made.append(target_id)
        if len(made) == copies:
            Conversation(tables.saver(), "t").put(log=["from a runner"])

    monkeypatch.setattr(store, "copy", copy)
    with pytest.raises(ThreadBusyError, match="continued while it was restored; stop its agent"):
        attempt.run()
    tables.now += 300
    # What it stored is kept as well, under an id of its own where that of the first attempt has something else.
    again = restoration(tables, keep_as="kept too")
    again.run()
    assert tables.seen() == damaged.restored
    kept = tables.saver().get_tuple(thread_config("kept too"))
    assert kept is not None
    assert kept.checkpoint["channel_values"]["log"] == ["from a runner"]


# On an engine


@pytest.fixture
def restored(client: DynamoDBClient, table_name: str) -> Iterator[Callable[[], str]]:
    """Give what makes a table of what is in the one in use now, as DynamoDB restores one, without the index."""
    name = f"{table_name}-restored"

    def restore() -> str:
        schema: Any = {**table_schema(name)}
        del schema["GlobalSecondaryIndexes"]
        keys = [each["AttributeName"] for each in schema["KeySchema"]]
        attributes = [each for each in schema["AttributeDefinitions"] if each["AttributeName"] in keys]
        client.create_table(**schema | {"AttributeDefinitions": attributes})
        for item in all_items(client, table_name):
            client.put_item(TableName=name, Item=item)
        return name

    yield restore
    if name in client.list_tables()["TableNames"]:
        client.delete_table(TableName=name)


KEY = {"serde": EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")}


@on_dynamodb_local
@pytest.mark.parametrize(
    ("options", "threads"),
    [
        pytest.param({}, WAITING, id="plain"),
        pytest.param(KEY, ["subgraphs"], id="encrypted", marks=pytest.mark.search),
        pytest.param({"ttl_seconds": 3600}, ["delta"], id="expiring", marks=pytest.mark.search),
    ],
)
def test_every_kind_of_thread_goes_on_from_the_point_in_time(
    make_saver: Callable[..., DynamoDBSaver],
    restored: Callable[[], str],
    options: dict[str, Any],
    threads: Iterable[str],
) -> None:
    saver = make_saver(**options)
    waiting = begin(saver, threads)
    begin(saver, ["fork"])
    fork = [each.checkpoint["id"] for each in saver.list(config("fork"))]
    table = restored()
    expected = {each: answer(saver, each) for each in waiting}
    graphs.agent(saver).invoke({"messages": [("user", "and then")]}, config("fork"))
    for thread_id in (*waiting, "fork"):
        prospect = Restoration(TableEndpoint(make_saver(**options)), table, thread_id).run()
        assert prospect.kept_as == f"{thread_id}.before-{table}"
    # From the interrupt that it was restored to, in a new process, to where it came the first time.
    assert {each: answer(make_saver(**options), each) for each in waiting} == expected
    assert [each.checkpoint["id"] for each in make_saver(**options).list(config("fork"))] == fork


class OwnSerializer(JsonPlusSerializer):
    """One of which nobody knows what it does with a value."""


@on_dynamodb_local
def test_a_serializer_of_ones_own_reads_what_is_compared(
    make_saver: Callable[..., DynamoDBSaver], restored: Callable[[], str]
) -> None:
    saver = make_saver(serde=OwnSerializer())
    talk = Conversation(saver, "t")
    talk.put(text="one")
    table = restored()
    talk.put(text="two")
    assert Restoration(TableEndpoint(saver), table, "t").run().checkpoints == 1
    assert stored_values(saver, thread_config("t")) == {"text": "one"}


@on_dynamodb_local
def test_it_is_restored_beside_the_one_in_use(
    make_saver: Callable[..., DynamoDBSaver], restored: Callable[[], str]
) -> None:
    saver = make_saver()
    talk = Conversation(saver, "t")
    talk.put(text="one", noise=noise(40_000))
    table = restored()
    talk.put(text="two")
    prospect = Restoration(TableEndpoint(saver), table, "t", as_id="t at nine").run()
    assert prospect == Prospect(checkpoints=1, present=0, is_restored=False, kept_as=None)
    assert stored_values(saver, thread_config("t at nine"))["text"] == "one"
    assert stored_values(saver, thread_config("t"))["text"] == "two"
    again = Restoration(TableEndpoint(saver), table, "t", as_id="t at nine").run()
    assert again == Prospect(checkpoints=1, present=1, is_restored=True, kept_as=None)
    Conversation(saver, "another").put(text="three")
    with pytest.raises(CheckpointerInputError, match=r"'another' .* is another conversation"):
        Restoration(TableEndpoint(saver), table, "t", as_id="another").run()
    assert stored_values(saver, thread_config("another")) == {"text": "three"}


@on_dynamodb_local
def test_a_thread_that_was_deleted_or_pruned_comes_back(
    make_saver: Callable[..., DynamoDBSaver], restored: Callable[[], str]
) -> None:
    saver = make_saver()
    for thread in ("deleted", "pruned"):
        talk = Conversation(saver, thread)
        for text in ("one", "two", "three"):
            talk.put(text=text)
    table = restored()
    saver.delete_thread("deleted")
    saver.prune(["pruned"], strategy="keep_last", keep_last=1)
    for thread, kept in (("deleted", None), ("pruned", f"pruned.before-{table}")):
        # What was pruned has lost its parent, which the restored table has not.
        assert Restoration(TableEndpoint(saver), table, thread).run().kept_as == kept
        assert [each.checkpoint["channel_values"]["text"] for each in saver.list(thread_config(thread))] == [
            "three",
            "two",
            "one",
        ]


@on_dynamodb_local
def test_what_was_written_to_the_newest_checkpoint_since_is_not_left_in_it(
    make_saver: Callable[..., DynamoDBSaver], restored: Callable[[], str]
) -> None:
    """The ids of the checkpoints are the same, and only a task's writes are not."""
    saver = make_saver()
    newest = Conversation(saver, "t").put(text="one")
    saver.put_writes(newest, [("__interrupt__", "go on?")], "task")
    table = restored()
    saver.put_writes(newest, [("text", "a bad answer")], "another task")
    prospect = Restoration(TableEndpoint(saver), table, "t").run()
    found, kept = (saver.get_tuple(thread_config(each)) for each in ("t", prospect.kept_as or ""))
    assert found is not None
    assert kept is not None
    assert found.pending_writes == [("task", "__interrupt__", "go on?")]
    assert len(kept.pending_writes or []) == 2


@on_dynamodb_local
def test_a_thread_that_is_damaged_is_not_thrown_away_and_it_is_said_what_to_do(
    make_saver: Callable[..., DynamoDBSaver],
    restored: Callable[[], str],
    client: DynamoDBClient,
    table_name: str,
) -> None:
    saver = make_saver()
    Conversation(saver, "t").put(noise=noise(50_000))
    table = restored()
    for segment in all_items(client, table_name, begins="S#"):
        client.delete_item(TableName=table_name, Key={"PK": segment["PK"], "SK": segment["SK"]})
    with pytest.raises(
        CheckpointCorruptionError, match=f"thread 't' of table {table_name}: .*restore beside it.*or delete"
    ):
        Restoration(TableEndpoint(make_saver()), table, "t").run()
    beside = Restoration(TableEndpoint(make_saver()), table, "t", as_id="beside")
    assert beside.run().checkpoints == 1
    saver.delete_thread("t")
    Restoration(TableEndpoint(make_saver()), table, "t").run()
    assert stored_values(make_saver(), thread_config("t")) == {"noise": noise(50_000)}
    for segment in all_items(client, table, begins="S#"):
        client.delete_item(TableName=table, Key={"PK": segment["PK"], "SK": segment["SK"]})
    with pytest.raises(CheckpointCorruptionError, match=f"of table {table}: .*to an earlier point in time"):
        Restoration(TableEndpoint(make_saver()), table, "t", as_id="again").run()


@on_dynamodb_local
def test_a_checkpoint_that_was_never_acknowledged_is_left_out(
    make_saver: Callable[..., DynamoDBSaver], restored: Callable[[], str], client: DynamoDBClient
) -> None:
    saver = make_saver()
    talk = Conversation(saver, "t")
    talk.put(text="one")
    talk.put(text="one", noise=noise(50_000))
    table = restored()
    newest = max(all_items(client, table, begins="C#"), key=lambda item: item["SK"]["S"])
    client.put_item(TableName=table, Item={**newest, "epoch": {"B": b"another epoch"}})
    for segment in all_items(client, table, begins="S#"):
        client.delete_item(TableName=table, Key={"PK": segment["PK"], "SK": segment["SK"]})
    Restoration(TableEndpoint(saver), table, "t").run()
    assert stored_values(make_saver(), thread_config("t")) == {"text": "one"}
    assert Restoration(TableEndpoint(saver), table, "t").look().is_restored


@on_dynamodb_local
def test_what_cannot_be_meant_is_refused_and_nothing_is_changed(
    make_saver: Callable[..., DynamoDBSaver],
    restored: Callable[[], str],
    client: DynamoDBClient,
    table_name: str,
) -> None:
    saver = make_saver(**KEY)
    talk = Conversation(saver, "t")
    talk.put(text="one")
    table = restored()
    talk.put(text="two")
    Conversation(saver, f"t.before-{table}").put(text="of another")
    before = all_items(client, table_name)

    def refused(thread_id: str = "t", **options: Any) -> None:
        of = options.pop("of", table)
        Restoration(TableEndpoint(options.pop("saver", saver)), of, thread_id, **options).run()

    with pytest.raises(CheckpointerInputError, match="is the table in use"):
        refused(of=table_name)
    with pytest.raises(CheckpointerInputError, match="keep_as has no effect"):
        refused(as_id="one", keep_as="another")
    with pytest.raises(CheckpointerInputError, match="is the thread itself"):
        refused(keep_as="t")
    with pytest.raises(CheckpointerInputError, match=f"'t.before-{table}' .* is another conversation"):
        refused()
    with pytest.raises(CheckpointNotFoundError, match=f"table {table} has no thread 'T'"):
        refused("T")
    with pytest.raises(CheckpointerConfigurationError, match=r"table no-such-table .*does not exist"):
        refused(of="no-such-table")
    with pytest.raises(CheckpointerConfigurationError, match="has no cipher"):
        refused(saver=make_saver())
    with pytest.raises(CheckpointCorruptionError, match="encrypted for another place"):
        refused(saver=make_saver(**KEY, bound_to="another-table"))
    left = [each for each in all_items(client, table_name) if each["SK"]["S"] != items.LOCK]
    assert left == before
