"""The directory of threads: when a thread enters it, and what a list shows of it."""

import base64
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._format.limits import FINDABLE_SECONDS
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.threads import (
    PAGE_LOOKUPS_MAX,
    ThreadPage,
    ThreadQuery,
    list_threads,
    set_thread,
)
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.protocol import kept_from
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.harness import ENCRYPTED, Harness, changes_thread, confirms

SECRET = b"sixteen bytes or more"
HOUR = 3600
DAY = 24 * HOUR


def nested(depth: int) -> Any:
    """Return a list in a list, and so on."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


class Users:
    """A table, and what one process does for several users."""

    def __init__(self, **options: Any) -> None:
        """Start with an empty table and a process whose puts name owners."""
        self.harness = Harness()
        self._options = {"owner_from": "user_id", **options}
        self.storage = self.process()

    def process(self, **options: Any) -> Storage:
        """The storage of a process that remembers nothing."""
        codec = options.pop("codec", self._options.get("codec"))
        ttl_seconds = options.pop("ttl_seconds", self._options.get("ttl_seconds"))
        storage = self.harness.process(ttl_seconds, codec).storage
        others = {
            name: value for name, value in self._options.items() if name not in ("codec", "ttl_seconds")
        }
        return replace(storage, **{**others, **options})

    def config(self, thread: str, user: Any, parent: str | None = None, **metadata: Any) -> Any:
        config = thread_config(thread, "", parent)
        if user is not None:
            config["configurable"]["user_id"] = user
        return {**config, "metadata": metadata} if metadata else config

    def put(
        self, thread: str, number: int, user: Any = "ada", storage: Storage | None = None, **more: Any
    ) -> Any:
        """The operation that stores a checkpoint of a thread."""
        parent = str(number - 1) if number > 1 else None
        arguments: Any = (checkpoint_of(str(number), {"x": number}), {**METADATA, **more}, {"x": 1})
        return put(storage or self.storage, self.config(thread, user, parent), *arguments)

    def store(self, thread: str, number: int = 1, user: Any = "ada", **options: Any) -> None:
        """Store a checkpoint of a thread."""
        self.harness.run(self.put(thread, number, user, **options))

    def describe(self, thread: str, owner: Any = None, title: Any = None, metadata: Any = None) -> None:
        """Say something of a thread."""
        self.harness.run(set_thread(self.process(), thread, owner, title, metadata))

    def page(self, owner: Any = "ada", storage: Storage | None = None, **asked: Any) -> ThreadPage:
        """A page of a list, as a process that remembers nothing reads it."""
        query = ThreadQuery(owner=owner, **asked)
        return self.harness.run(list_threads(storage or self.process(), query))

    def threads(self, owner: Any = "ada", **asked: Any) -> list[str]:
        """The ids of the threads of a page."""
        return [each.thread_id for each in self.page(owner, **asked).threads]

    def thread_item(self, thread: str) -> Any:
        """The thread item."""
        return self.harness.items("T", thread)["T"]


@pytest.fixture
def users() -> Users:
    """Give an empty table."""
    return Users()


# Entering and touching


def test_the_first_put_enters_the_thread_with_no_further_request(users: Users) -> None:
    listed = users.harness.begin(users.put("one", 1)).trace()
    unlisted = users.harness.begin(users.put("two", 1, storage=users.process(owner_from=None))).trace()
    # The look for another saver's table comes once for each process.
    assert [call.method for call in listed] == [call.method for call in unlisted]
    assert users.threads() == ["one"]
    assert users.threads(None) == ["one"]


@pytest.mark.parametrize("is_old", [False, True], ids=["new", "from before the option"])
def test_a_thread_that_enters_without_an_owner_is_told_once(
    *, is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    users = Users(owner_from="userid")
    if is_old:
        users.store("one", storage=users.process(owner_from=None))
    process = users.process()
    for thread in ("one", "two"):
        users.store(thread, 2, storage=process)
    assert caplog.messages == [
        "Thread 'one' enters the directory without an owner: neither `configurable` nor the metadata of its checkpoint"
        " has the key 'userid', which owner_from names. `threads(owner=...)` and `delete --owner` do not find it. Name"
        " the owner with set_thread(owner=...); `langgraph-dynamodb threads --without-owner` lists such threads. This"
        " is logged once."
    ]


def test_a_later_put_without_the_owner_is_not_told(users: Users, caplog: pytest.LogCaptureFixture) -> None:
    users.store("one")
    users.store("one", 2, None, storage=users.process())
    users.store("unlisted", storage=users.process(owner_from=None))
    assert (users.threads(), caplog.messages) == (["one"], [])


def test_a_put_does_not_rely_on_another_one_that_was_to_enter_the_thread(users: Users) -> None:
    """Both share a process, and the other's request fails."""
    users.store("one", storage=users.process(owner_from=None))
    first, second = (users.harness.begin(users.put("one", number)) for number in (2, 3))
    for each in (first, second):
        each.until(confirms)
    first.go_on()
    first.until(changes_thread("active"))
    with pytest.raises(ConnectionError):
        first.go_on([ConnectionError()])
    second.finish()
    assert users.threads() == ["one"]


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("prunes", [1, 2])
def test_a_thread_that_is_pruned_between_confirmation_and_touch_is_touched(
    users: Users, *, is_listed: bool, prunes: int
) -> None:
    users.store("one", storage=None if is_listed else users.process(owner_from=None))
    users.store("one", 2, storage=None if is_listed else users.process(owner_from=None))
    users.harness.now += HOUR
    entered = users.harness.begin(users.put("one", 3, storage=users.process()))
    for number in range(prunes):
        entered.until(changes_thread("active"))
        users.harness.run(prune(users.process(), ["one"], "keep_last", 2 - number))
        entered.go_on()
    entered.finish()
    [thread] = users.page().threads
    assert thread.last_active == datetime.fromtimestamp(users.harness.now, timezone.utc)


def test_a_thread_that_is_deleted_between_confirmation_and_touch_is_in_no_list(users: Users) -> None:
    users.store("one", storage=users.process(owner_from=None))
    entered = users.harness.begin(users.put("one", 2)).until(changes_thread("active"))
    users.harness.run(delete_thread(users.process(), "one"))
    entered.finish()
    assert users.threads(None) == []


@pytest.mark.parametrize(
    ("seconds", "is_known", "asked"),
    [(899, True, [True, False]), (901, True, [False, True]), (901, False, [True, True])],
)
def test_a_put_touches_once_that_is_due_in_place_of_its_confirmation_if_it_can(
    users: Users, seconds: int, is_known: bool, asked: list[bool]
) -> None:
    """A process that knows nothing learns from its confirmation that the thread is in the directory."""
    users.store("one")
    began, users.harness.now = users.harness.now, users.harness.now + seconds
    calls = users.harness.begin(users.put("one", 2, storage=None if is_known else users.process())).trace()
    assert [any(map(each, calls)) for each in (confirms, changes_thread("active"))] == asked
    [thread] = users.page().threads
    assert thread.last_active == datetime.fromtimestamp(
        users.harness.now if asked[1] else began, timezone.utc
    )
    assert thread.created_at == datetime.fromtimestamp(began, timezone.utc)


def test_two_puts_of_a_process_side_by_side_touch_once(users: Users) -> None:
    users.store("one")
    users.harness.now += HOUR
    users.harness.begin(users.put("one", 2)).until(changes_thread("active")).perform()
    # The first has no answer yet. The second could only repeat a request that would fail.
    second = users.harness.begin(users.put("one", 3)).trace()
    assert [any(map(each, second)) for each in (confirms, changes_thread("active"))] == [True, False]
    assert users.page().threads[0].last_active == datetime.fromtimestamp(users.harness.now, timezone.utc)


def test_any_saver_touches_a_thread_that_is_in_the_directory() -> None:
    users = Users(owner_from=None)
    users.describe("one", owner="ada")
    users.harness.now += HOUR
    users.store("one")
    assert users.page().threads[0].last_active == datetime.fromtimestamp(users.harness.now, timezone.utc)


def test_writes_that_confirm_touch_too(users: Users) -> None:
    users.store("one")
    users.harness.now += HOUR
    config = thread_config("one", "inner", "1")
    users.harness.run(put_writes(users.storage, config, [("x", 1)], "task", ""))
    assert users.page().threads[0].last_active == datetime.fromtimestamp(users.harness.now, timezone.utc)


@pytest.mark.parametrize("user", ["ada", 42])
def test_the_owner_may_be_in_configurable_or_in_metadata(users: Users, user: Any) -> None:
    users.store("one", user=user)
    config = users.config("two", None, user_id=user)
    users.harness.run(put(users.storage, config, checkpoint_of("1", {}), METADATA, {}))
    # A move has the checkpoint's metadata alone.
    users.store("three", user=None, user_id=user)
    assert set(users.threads(user)) == {"one", "two", "three"}


def test_an_owner_that_metadata_cannot_hold_is_found_in_the_config(users: Users) -> None:
    user = UUID(int=1)
    users.store("one", user=user)
    assert users.threads(user) == ["one"]


def test_a_later_run_never_changes_the_owner(users: Users) -> None:
    users.store("one", user="ada")
    users.harness.now += HOUR
    users.store("one", 2, user="bob", storage=users.process())
    assert (users.threads("ada"), users.threads("bob")) == (["one"], [])
    users.describe("one", owner="bob")
    assert (users.threads("ada"), users.threads("bob")) == ([], ["one"])


@pytest.mark.parametrize("user", ["", True, 1.5, ["ada"], "x\ud800", "a" * 800])
def test_what_is_no_owner_is_refused_before_anything_is_stored(users: Users, user: Any) -> None:
    with pytest.raises(CheckpointerInputError):
        users.store("one", user=user)
    assert not users.harness.items("", "one")
    with pytest.raises(CheckpointerInputError):
        users.describe("one", owner=user)
    assert not users.harness.items("", "one")
    users.store("one")
    before = users.harness.items("", "one")
    with pytest.raises(CheckpointerInputError):
        users.store("one", 2, user=user)
    assert users.harness.items("", "one") == before


# Describing


def test_what_is_not_said_stays_as_it_was(users: Users) -> None:
    users.store("one")
    users.describe("one", title="Trains", metadata={"pinned": True})
    users.describe("one", title="Planes")
    [thread] = users.page().threads
    assert (thread.owner, thread.title, thread.metadata) == ("ada", "Planes", {"pinned": True})
    users.describe("one", title="", metadata={})
    [thread] = users.page().threads
    assert (thread.owner, thread.title, thread.metadata) == ("ada", None, {})


@pytest.mark.parametrize("kept", [None, "ada"])
def test_all_that_was_said_can_be_taken_back(users: Users, kept: str | None) -> None:
    users.store("one", user=kept)
    users.describe("one", metadata={"pinned": True})
    users.describe("one", metadata={})
    [thread] = users.page(None).threads
    assert (thread.owner, thread.title, thread.metadata) == (kept, None, {})
    assert users.threads("ada") == ([] if kept is None else ["one"])


def test_a_thread_can_be_described_before_its_first_put() -> None:
    users = Users(ttl_seconds=HOUR)
    users.describe("one", owner="ada", title="New chat")
    assert users.threads() == ["one"]
    users.store("one", user="bob")
    assert [(each.owner, each.title) for each in users.page().threads] == [("ada", "New chat")]


def test_saying_the_same_again_writes_nothing(users: Users) -> None:
    users.describe("one", title="Trains")
    before = users.thread_item("one")
    users.describe("one", title="Trains")
    assert users.thread_item("one") == before


def test_two_descriptions_side_by_side_keep_both(users: Users) -> None:
    users.store("one")
    first = users.harness.begin(set_thread(users.process(), "one", None, "Trains", None))
    first.until(changes_thread("about"))
    users.describe("one", metadata={"pinned": True})
    first.finish()
    [thread] = users.page().threads
    assert (thread.title, thread.metadata) == ("Trains", {"pinned": True})


def test_a_description_gives_up_where_deletions_keep_interfering(users: Users) -> None:
    operation = users.harness.begin(set_thread(users.process(), "one", "ada", None, None))

    def interfere() -> None:
        while not operation.done:
            operation.go_on()
            for item in users.harness.items("T", "one").values():
                users.harness.remove(item)

    with pytest.raises(ThreadBusyError, match="'one'"):
        interfere()


@pytest.mark.parametrize(
    "asked",
    [
        {"title": 1},
        {"title": "x" * 800},
        *[{"metadata": each} for each in ("x", {"x": object()}, {"x": nested(100_000)})],
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_stored(users: Users, asked: Any) -> None:
    with pytest.raises(CheckpointerInputError):
        users.describe("one", **asked)
    assert not users.harness.items("", "one")


# Leaving


def test_an_expired_thread_is_not_listed_and_leaves_nothing_to_the_next_of_its_id() -> None:
    users = Users(ttl_seconds=HOUR)
    users.store("one")
    users.describe("one", title="Trains")
    users.harness.now += HOUR - 1
    assert users.threads() == ["one"]
    users.harness.now += 1
    assert users.threads() == users.threads(None) == []
    # Whoever erases a person's data sees it as long as DynamoDB may have something of it.
    query = ThreadQuery(owner="ada")
    left = kept_from(HOUR, 0) - HOUR + FINDABLE_SECONDS
    for rest in (0, left - 1):
        users.harness.now += rest
        users.harness.model.expire()
        shown = users.harness.run(list_threads(users.process(), query, for_operators=True))
        assert [each.thread_id for each in shown.threads] == ["one"]
    users.harness.now += 2
    users.harness.model.expire()
    users.store("one", user="bob", storage=users.process())
    assert [(each.owner, each.title) for each in users.page("bob").threads] == [("bob", None)]
    users.harness.now += 4 * HOUR + FINDABLE_SECONDS
    users.harness.model.expire()
    users.store("one", storage=users.process(owner_from=None))
    assert users.threads(None) == []


def test_a_short_ttl_makes_touches_as_frequent_as_it_needs() -> None:
    users = Users(ttl_seconds=100)
    for number in range(1, 40):
        users.store("one", number)
        users.harness.now += 9
        assert users.threads() == ["one"]


def test_a_copy_is_listed_as_its_original_is(users: Users) -> None:
    users.store("one")
    users.describe("one", title="Trains", metadata={"pinned": True})
    users.harness.now += HOUR
    users.harness.run(copy_thread(users.process(), "one", "two"))
    one, two = sorted(users.page().threads, key=lambda each: each.thread_id)
    assert replace(two, thread_id="one") == one


def test_a_copy_with_a_ttl_is_listed_until_it_expires(users: Users) -> None:
    users.store("one")
    users.harness.now += 60 * DAY
    for _ in range(2):
        # The second copy prolongs what the first one entered.
        users.harness.now += HOUR - 1
        users.harness.run(copy_thread(users.process(ttl_seconds=HOUR), "one", "two"))
        assert set(users.threads()) == {"one", "two"}
    users.harness.now += HOUR - 1
    assert set(users.threads()) == {"one", "two"}
    users.harness.now += 1
    assert users.threads() == ["one"]
    # Nothing of it is left to the next thread of its id.
    users.harness.now += 2 * HOUR
    users.store("two", user="bob", storage=users.process(ttl_seconds=1))
    users.harness.now += 1
    assert users.threads("bob") == []


def test_a_copy_of_what_is_not_listed_is_listed_if_the_saver_looks_for_owners(users: Users) -> None:
    other = users.process(owner_from=None)
    users.store("one", storage=other)
    users.harness.run(copy_thread(other, "one", "two"))
    assert users.threads(None) == []
    users.harness.run(copy_thread(users.process(), "one", "three"))
    assert users.threads() == ["three"]


# Tenants and secrets


@pytest.mark.parametrize("place", ["configurable", "metadata of the config", "metadata"])
def test_an_owner_whose_name_langgraph_would_change_is_not_another_one(users: Users, place: str) -> None:
    """LangGraph removes NUL from metadata."""
    name = "ada\0"
    config = users.config("one", name if place == "configurable" else None)
    if place == "metadata of the config":
        config["metadata"] = {"user_id": name}
    metadata: Any = {**METADATA, **({"user_id": name} if place == "metadata" else {})}
    with pytest.raises(CheckpointerInputError, match="has a NUL"):
        users.harness.run(put(users.storage, config, checkpoint_of("1", {}), metadata, {}))
    assert not users.harness.items("", "one")


def test_a_copy_for_another_tenant_is_not_listed(users: Users) -> None:
    users.store("a/one", user="a/ada")
    users.harness.run(copy_thread(users.process(), "a/one", "b/one"))
    assert users.threads(None) == ["a/one"]


def test_a_thread_has_no_owner_of_another_tenant(users: Users) -> None:
    with pytest.raises(CheckpointerInputError, match="'b/'"):
        users.store("a/one", user="b/bob")
    assert not users.harness.items("", "a/one")
    users.store("a/one", user="a/ada")
    assert users.threads("a/ada") == ["a/one"]


@pytest.mark.parametrize("codec", [None, ENCRYPTED])
def test_an_entry_that_somebody_forged_is_not_listed(codec: Any) -> None:
    """Policies cannot keep a tenant from writing another one's name into its own items."""
    users = Users(codec=codec, owner_key=SECRET)
    for tenant in ("a", "b"):
        users.store(f"{tenant}/one", user=f"{tenant}/ada")
    own, other = users.thread_item("a/one"), users.thread_item("b/one")
    users.harness.change(own, owner=other["owner"])
    assert users.threads("b/ada") == ["b/one"]
    # With what the other tenant's item says of its owner, too.
    users.harness.change(own, owner=other["owner"], about=other["about"])
    assert users.threads("b/ada") == ["b/one"]


def test_an_encrypted_table_shows_no_name_and_no_title() -> None:
    users = Users(codec=ENCRYPTED, owner_key=SECRET)
    users.store("tenant/one", user="tenant/ada-lovelace")
    users.describe("tenant/one", title="Engines")
    item = users.thread_item("tenant/one")
    assert item["owner"]["S"].startswith("tenant/")
    assert not any(each in str(item) for each in ("lovelace", "Engines"))
    [thread] = users.page("tenant/ada-lovelace").threads
    assert (thread.owner, thread.title) == ("tenant/ada-lovelace", "Engines")
    other = users.process(owner_key=b"another key of 20 b.")
    assert users.threads("tenant/ada-lovelace", storage=other) == []


def test_what_was_entered_before_a_saver_encrypted_is_entered_as_it_does(users: Users) -> None:
    for thread in ("described", "copied"):
        users.store(thread)
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    codec = Codec(serde, allow_unencrypted=True)
    encrypting = users.process(codec=codec, owner_key=SECRET)
    assert users.threads(storage=encrypting) == []
    users.harness.run(set_thread(encrypting, "described", None, None, None))
    users.harness.run(copy_thread(encrypting, "copied", "copy"))
    assert set(users.threads(storage=encrypting)) == {"described", "copy"}
    assert users.threads() == ["copied"]


def test_a_saver_that_encrypts_names_no_owner_without_a_key() -> None:
    users = Users(codec=ENCRYPTED)
    with pytest.raises(CheckpointerConfigurationError, match="owner_key"):
        users.store("one")
    assert not users.harness.items("", "one")


# Lists


def test_a_list_is_in_the_order_of_activity_page_by_page(users: Users) -> None:
    for number in range(7):
        users.store(f"thread {number}")
        users.harness.now += 1
    users.harness.now += HOUR
    users.store("thread 3", 2)
    order = ["thread 3", *(f"thread {number}" for number in (6, 5, 4, 2, 1, 0))]
    assert users.threads() == order
    found, cursor = list[str](), None
    for _ in range(4):
        page = users.page(limit=2, before=cursor)
        found += [each.thread_id for each in page.threads]
        cursor = page.cursor
    assert (found, cursor) == (order, None)


def test_a_page_is_one_query(users: Users) -> None:
    for number in range(30):
        users.store(f"thread {number}")
    calls = users.harness.begin(list_threads(users.process(), ThreadQuery(owner="ada"))).trace()
    assert [(call.method, call.params["Limit"]) for call in calls] == [("query", 21)]


def days(users: Users, **asked: Any) -> list[str]:
    """The days for which a list of all threads makes a query each."""
    calls = users.harness.begin(list_threads(users.process(), ThreadQuery(**asked))).trace()
    assert {(call.method, call.params["IndexName"]) for call in calls} == {("query", "day-index")}
    return [call.params["ExpressionAttributeValues"][":hash"]["S"] for call in calls]


def test_a_list_of_all_threads_is_a_query_for_each_day(users: Users) -> None:
    now = datetime.fromtimestamp(users.harness.now, timezone.utc)
    assert days(users, since=now - timedelta(days=2)) == [
        (now - timedelta(days=each)).date().isoformat() for each in range(3)
    ]
    # Nor does a cursor of the far future cost one for each day to come.
    cursor = encoded(b'[253402300799,"x"]')
    assert len(days(users, since=now - timedelta(days=1), before=cursor)) == 3


def test_a_cursor_only_names_a_position(users: Users) -> None:
    for owner in ("ada", "bob"):
        for number in range(3):
            users.store(f"{owner} {number}", user=owner)
            users.harness.now += 1
    cursor = users.page("bob", limit=1).cursor
    assert set(users.threads("ada", before=cursor)) <= {"ada 0", "ada 1", "ada 2"}


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode()


NO_CURSORS = ["", "x", "WzFd", "e30=", "WzEsMl0=", "WyJ4IiwidCJd", "WzEuNSwidCJd", 7, "é"]
CRAFTED = [b"[" * 200_000, b"[" * 12_000, b'[-1,"t"]', b'[253402300800,"t"]']


@pytest.mark.parametrize("owner", ["ada", None])
def test_what_is_no_cursor_is_refused_in_a_few_words(owner: str | None) -> None:
    for cursor in (*NO_CURSORS, *map(encoded, CRAFTED)):
        with pytest.raises(CheckpointerInputError, match="give the cursor of an earlier page") as caught:
            Users().page(owner, before=cursor)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("character", ["t", "\x01", "é", "€", "\N{GRINNING FACE}"])
def test_a_thread_of_the_longest_name_has_a_cursor(users: Users, character: str) -> None:
    # The key of a thread is its id with a few characters more. A control character is three bytes of it.
    key_bytes = 3 if character < " " else len(character.encode())
    names = [character * (2040 // key_bytes) + each for each in "ab"]
    for each in names:
        users.store(each)
    first = users.page(limit=1)
    assert sorted([first.threads[0].thread_id, *users.threads(before=first.cursor)]) == names


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 0},
        {"limit": 1001},
        {"limit": None},
        {"status": "asleep"},
        {"metadata": "x"},
        {"metadata": {"x": {1, 2}}},
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": "\ud800"}},
        {"metadata": {"x": nested(100_000)}},
        {"owner": ""},
        {"since": "yesterday"},
        {"since": datetime(2026, 1, 1)},
        {"since": datetime.max},
        {"owner": None, "since": datetime.min.replace(tzinfo=timezone.utc)},
        {"owner": None, "since": datetime.fromtimestamp(0, timezone.utc)},
    ],
)
def test_what_cannot_be_listed_is_refused(asked: Any) -> None:
    with pytest.raises(CheckpointerInputError):
        Users().page(**asked)


def test_metadata_and_time_select(users: Users) -> None:
    for number in range(9):
        users.store(f"thread {number}")
        users.describe(f"thread {number}", metadata={"odd": number % 2 == 1, "list": [number]})
        users.harness.now += 1
    assert users.threads(metadata={"odd": True}, limit=3) == ["thread 7", "thread 5", "thread 3"]
    assert users.threads(metadata={"list": [4]}) == ["thread 4"]
    since = datetime.fromtimestamp(users.harness.now - 2, timezone.utc)
    assert users.threads(since=since) == ["thread 8", "thread 7"]
    # A page that would begin behind the end is empty.
    cursor = users.page(limit=3).cursor
    assert [users.threads(each, before=cursor, since=since) for each in ("ada", None)] == [[], []]


def test_metadata_are_compared_as_they_are_stored(users: Users) -> None:
    users.store("bare")
    users.store("one")
    users.describe("one", metadata={"tags": ("a", {"b": ("c",)}), "none": None, "pinned": True})
    assert users.threads(metadata={"absent": None}) == []
    assert users.threads(metadata={"none": None}) == ["one"]
    for tags in (("a", {"b": ("c",)}), ["a", {"b": ["c"]}]):
        assert users.threads(metadata={"tags": tags}) == ["one"]
    assert users.threads(metadata={"tags": ("a",)}) == []
    # Python's equality decides, as in the lists of checkpoints.
    assert users.threads(metadata={"pinned": 1}) == ["one"]


@pytest.mark.parametrize(
    "zone", [timezone.utc, timezone(timedelta(hours=-14)), timezone(timedelta(hours=14))]
)
def test_a_list_may_end_at_any_time(users: Users, zone: timezone) -> None:
    users.store("one")
    for owner in ("ada", None):
        assert users.threads(owner, since=datetime.max.replace(tzinfo=zone)) == []
    assert users.threads("ada", since=datetime.min.replace(tzinfo=zone)) == ["one"]


def test_a_list_of_all_threads_goes_back_a_year(users: Users) -> None:
    users.store("one")
    last = users.harness.now
    users.harness.now += 366 * 24 * HOUR
    assert users.threads(None, since=datetime.fromtimestamp(last, timezone.utc)) == ["one"]
    users.harness.now += 1
    with pytest.raises(CheckpointerInputError, match="366 days ago"):
        users.threads(None, since=datetime.fromtimestamp(last, timezone.utc))


def test_all_threads_are_listed_day_by_day(users: Users) -> None:
    for number in range(6):
        users.store(f"thread {number}", user=f"user {number}")
        users.harness.now += 20 * HOUR
    order = [f"thread {number}" for number in (5, 4, 3, 2, 1, 0)]
    assert users.threads(None) == order
    found, cursor = list[str](), None
    while True:
        page = users.page(None, limit=4, before=cursor)
        found += [each.thread_id for each in page.threads]
        if (cursor := page.cursor) is None:
            break
    assert found == order
    since = datetime.fromtimestamp(users.harness.now - 45 * HOUR, timezone.utc)
    assert users.threads(None, since=since) == ["thread 5", "thread 4"]
    users.harness.now += 29 * 24 * HOUR
    assert users.threads(None) == ["thread 5"]


def test_the_status_is_that_of_the_newest_checkpoint(users: Users) -> None:
    users.store("asks")
    at = thread_config("asks", "", "1")
    users.harness.run(put_writes(users.storage, at, [("__interrupt__", "?")], "task", ""))
    users.describe("new", owner="ada")
    found = {each.thread_id: (each.status, each.step) for each in users.page(with_status=True).threads}
    assert found == {"asks": ("waiting", 1), "new": ("idle", None)}
    assert (users.threads(status="waiting"), users.threads(status="idle")) == (["asks"], ["new"])
    assert {each.status for each in users.page().threads} == {None}


def test_damage_is_told(users: Users) -> None:
    users.store("one")
    item = users.thread_item("one")
    sealed = bytes(item["about"]["B"])
    users.harness.change(item, about={"B": sealed[:-1] + bytes([sealed[-1] ^ 1])})
    with pytest.raises(CheckpointCorruptionError, match="SK='T'"):
        users.page()


def test_damage_of_one_thread_leaves_the_others_in_the_list(
    users: Users, caplog: pytest.LogCaptureFixture
) -> None:
    """What names its owner is damaged, so nobody knows whether the thread belongs there."""
    for thread in ("one", "two", "three"):
        users.store(thread)
    item = users.thread_item("two")
    users.harness.change(item, about={"B": bytes(item["about"]["B"])[:-1]})
    assert sorted(users.threads()) == ["one", "three"]
    assert "Thread 'two' is left out of a list: item PK='two#' SK='T' is damaged" in caplog.text
    first = users.page(limit=1)
    assert sorted([first.threads[0].thread_id, *users.threads(before=first.cursor)]) == ["one", "three"]


def test_a_thread_that_another_key_encrypts_leaves_the_others_in_the_list(
    caplog: pytest.LogCaptureFixture,
) -> None:
    users = Users(owner_key=SECRET, codec=ENCRYPTED)
    other, third = (EncryptedSerializer.from_pycryptodome_aes(key=each * 16) for each in (b"2", b"3"))
    users.store("one")
    users.store("two", storage=users.process(codec=Codec(other, bound_to=users.storage.table.name)))
    assert users.threads() == ["one"]
    assert "Thread 'two' is left out of a list: item PK='two#' SK='T' is intact" in caplog.text
    # Nobody can read any.
    with pytest.raises(UnreadableError):
        users.page(storage=users.process(codec=Codec(third)))


def test_a_page_with_a_status_ends_after_a_number_of_look_ups(users: Users) -> None:
    users.store("asks")
    at = thread_config("asks", "", "1")
    users.harness.run(put_writes(users.storage, at, [("__interrupt__", "?")], "task", ""))
    for number in range(PAGE_LOOKUPS_MAX + 1):
        users.harness.now += 1
        users.store(f"thread {number}")
    first = users.page(status="waiting")
    assert first.threads == []
    last = users.page(status="waiting", before=first.cursor)
    assert ([each.thread_id for each in last.threads], last.cursor) == (["asks"], None)
    assert len(users.threads(status="idle", limit=PAGE_LOOKUPS_MAX)) == PAGE_LOOKUPS_MAX


def test_a_thread_whose_newest_checkpoint_is_damaged_has_no_status(
    users: Users, caplog: pytest.LogCaptureFixture
) -> None:
    users.store("one")
    users.store("two")
    users.harness.change(users.harness.items("C#1#", "two")["C#1#"], metadata={"N": "1"})
    found = {each.thread_id: each.status for each in users.page(with_status=True).threads}
    assert found == {"one": "idle", "two": None}
    assert "does not know the status of thread 'two': item PK='two#' SK='C#1#' is damaged" in caplog.text
    assert users.threads(status="idle") == ["one"]


@pytest.mark.parametrize("damage", [
    {"alive_until": {"N": "1E+30"}}, {"alive_until": {"S": "x"}},
    {"created_at": {"N": "1E+30"}}, {"created_at": {"S": "x"}},
], ids=str)  # fmt: skip
def test_a_thread_with_damaged_times_is_listed(damage: Any, caplog: pytest.LogCaptureFixture) -> None:
    users = Users(ttl_seconds=1000)
    users.store("one")
    users.store("two")
    users.harness.change(users.thread_item("two"), **damage)
    assert sorted(users.threads()) == ["one", "two"]
    assert "item PK='two#' SK='T' is damaged" in caplog.text
