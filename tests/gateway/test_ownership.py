"""Principals that are bound to an owner: whatever they send, they reach that owner's threads and no others."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic_core import to_json
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._operations.delete import delete_thread
from langgraph.checkpoint.dynamodb._operations.put import put as put_core
from langgraph.checkpoint.dynamodb._operations.thread_item import PinnedEpochError
from langgraph.checkpoint.dynamodb._operations.threads import set_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.gateway import Principal, create_gateway, serving, thread_calls
from langgraph.checkpoint.dynamodb.gateway.call import endpoints_of
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import MakeSaver
from tests.gateway.conftest import by_token, send_as
from tests.gateway.requests import example
from tests.gateway.through.remote import served_on
from tests.support.checkpoints import METADATA, Conversation, all_items, checkpoint_of, noise, thread_config
from tests.support.gateway_service import gateway_service
from tests.support.harness import ENCRYPTED, Harness, Run, asks
from tests.support.operations import Side, ask, both_sides, operations_on
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

ENDPOINTS = endpoints_of(thread_calls)
BY_NAME = {each.name: each for each in ENDPOINTS}
# Without an owner, a principal has the threads of its tenant.
PRINCIPALS = {
    name: Principal(name, "acme", RIGHTS, owner)
    for name, owner in (("ada", "ada"), ("bob", "bob"), ("acme", None))
} | {"operator": Principal("operator", rights=RIGHTS)}
ONE = {"thread_id": "acme/1"}
NO_OWNERS_OF_ADA = ("acme/bob", "acme/", "ada")
Connect = Callable[..., HttpCheckpointSaver]


@pytest.fixture
def connect(saver: DynamoDBSaver) -> Iterator[Connect]:
    """Give a function that makes the client of a principal. The requests to DynamoDB are recorded."""
    saver.storage.cache.facts.is_shared = False
    with contextlib.ExitStack() as stack:
        urls: list[str] = []

        def make(name: str, **options: Any) -> HttpCheckpointSaver:
            if not urls:
                service = gateway_service(saver, authenticate=by_token(PRINCIPALS))
                urls.append(stack.enter_context(service))
            client = HttpCheckpointSaver(urls[0], auth=name, thread_prefix="acme/", **options)
            return stack.enter_context(client)

        yield make


def put(saver: HttpCheckpointSaver, thread: str, step: int = 1) -> Any:
    """Store a checkpoint."""
    return saver.put(thread_config(thread), checkpoint_of(str(step), {"x": step}), METADATA, {"x": step})


# What they may do


@both_sides
def test_new_threads_get_the_owner_and_lists_are_theirs(connect: Connect, side: Side) -> None:
    ada, bob = connect("ada"), connect("bob")
    config = put(ada, "one")
    ask(side, ada, "put_writes", config, [("x", noise(100_000))], "task")
    put(bob, "two")
    ask(side, ada, "put_writes", thread_config("writes first", "", "9"), [("x", 1)], "task")
    ask(side, ada, "copy_thread", "one", "copy")
    ask(side, ada, "set_thread", "described", title="New chat")
    for each in (ada.threads(), ask(side, ada, "threads", owner="ada", with_status=True)):
        assert {thread.thread_id for thread in each.threads} == {"one", "writes first", "copy", "described"}
        assert {thread.owner for thread in each.threads} == {"ada"}
    assert [each.thread_id for each in bob.threads().threads] == ["two"]
    assert len(connect("acme").threads(owner="bob").threads) == 1
    for arguments in operations_on("one", "copy").items():
        if arguments[0] not in ("delete_for_runs", "copy_thread"):
            ask(side, ada, arguments[0], **arguments[1])
    assert ada.get_tuple(thread_config("one")) is None
    # The id is free: what is new in it is its creator's.
    put(bob, "one")
    assert {each.thread_id for each in bob.threads().threads} == {"one", "two"}


# What they may not


def test_a_thread_that_gets_the_owner_of_its_credentials_is_not_told(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    put(connect("ada", owner_from="user_id"), "one")
    assert "without an owner" not in caplog.text
    put(connect("acme", owner_from="user_id"), "two")
    assert "without an owner" in caplog.text


def test_an_owner_is_changed_by_those_who_are_bound_to_none(connect: Connect) -> None:
    ada, bob = connect("ada"), connect("bob")
    put(ada, "one")
    connect("acme").set_thread("one", owner="bob")
    assert bob.get_tuple(thread_config("one")) is not None
    # Neither what the client remembers nor what the gateway has answered before counts.
    with pytest.raises(CheckpointerConfigurationError, match="another owner"):
        put(ada, "one", 2)


# Requests by hand


@pytest.fixture
def gateway(make_saver: MakeSaver) -> Starlette:
    """Give a gateway without a network."""
    return create_gateway(make_saver(), authenticate=by_token(PRINCIPALS))


async def send(gateway: Starlette, who: str, name: str, document: Any) -> httpx.Response:
    """Send a request as somebody."""
    return await send_as(gateway, who, f"/checkpoints/{name}", document)


def stored(thread_id: str = "acme/1", **more: Any) -> dict[str, Any]:
    """A request that stores something, and creates its thread if there is none."""
    task = {"checkpoint_id": "1", "task_id": "task", "writes": [["x", {"type": "null", "data": b""}]]}
    return {"thread_id": thread_id, **(task if "owner" not in more else {}), **more}


def checkpointed(thread_id: str = "acme/1", **more: Any) -> dict[str, Any]:
    """A request that stores a checkpoint."""
    return {
        "thread_id": thread_id,
        "checkpoint": {"id": "1", "channel_versions": {}},
        "metadata": {},
        "new_versions": {},
        "values": {},
        **more,
    }


@pytest.mark.parametrize("endpoint", [each.name for each in ENDPOINTS])
async def test_every_endpoint_refuses_what_is_another_s_and_nobody_s(
    gateway: Starlette, endpoint: str, own_client: Any, table_name: str
) -> None:
    for who, thread in (("ada", "1"), ("acme", "nobody"), ("bob", "mine")):
        assert (await send(gateway, who, "put-writes", stored(f"acme/{thread}"))).status_code == 200
    before = all_items(own_client, table_name)
    for thread in ("acme/1", "acme/nobody"):
        request = example(BY_NAME[endpoint], thread)
        requests = [request]
        if "owner" in request:
            owners = (
                ("acme/ada",) if endpoint in ("threads", "delete-owner") else (None, "acme/ada", "acme/bob")
            )
            requests = [request | {"owner": owner} for owner in owners]
        if endpoint == "set-thread":
            requests.append({"thread_id": "acme/mine", "owner": "acme/ada"})
        if endpoint == "copy-thread":
            requests = [request | {f"{end}_thread_id": "acme/mine"} for end in ("source", "target")]
        if endpoint == "list":
            requests.append({"filter": {"run_id": "r"}})
        for each in requests:
            answer = await send(gateway, "bob", endpoint, each)
            assert answer.status_code == 403, (each, answer.text)
    assert all_items(own_client, table_name) == before


@pytest.mark.parametrize(
    ("name", "document", "status", "says"),
    [
        *(("put", checkpointed(owner=each), 403, "owner") for each in NO_OWNERS_OF_ADA),
        *(("set-thread", {**ONE, "owner": each}, 403, "owner") for each in NO_OWNERS_OF_ADA),
        ("copy-thread", {"source_thread_id": "acme/1", "target_thread_id": "acme/2"}, 404, "no checkpoint"),
    ],
)
async def test_what_is_refused_creates_no_thread(
    name: str, document: Any, status: int, says: str, gateway: Starlette, own_client: Any, table_name: str
) -> None:
    answer = await send(gateway, "ada", name, document)
    assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text
    assert all_items(own_client, table_name) == []


async def test_a_thread_has_no_owner_of_another_tenant(gateway: Starlette) -> None:
    answer = await send(gateway, "operator", "put", checkpointed("other/1", owner="acme/ada"))
    assert answer.status_code == 400
    assert "a name before a slash is a tenant" in answer.json()["detail"]


async def test_a_lock_is_taken_before_its_thread_exists(gateway: Starlette) -> None:
    lock = {"thread_id": "acme/1", "action": "acquire", "token": bytes(8)}
    answer = await send(gateway, "ada", "lock", lock)
    assert answer.json()["held_until"]


@pytest.mark.parametrize(
    "name", [each.name for each in ENDPOINTS if each.absent is not None and each.creates is None]
)
async def test_what_does_not_exist_has_an_empty_answer_and_gets_no_trace(
    gateway: Starlette, name: str, own_client: Any, table_name: str
) -> None:
    endpoint = BY_NAME[name]
    request = example(endpoint)
    request.pop("after", None)
    answer = await send(gateway, "ada", name, request)
    assert answer.status_code == 200, answer.text
    assert endpoint.absent is not None
    assert answer.content == endpoint.encoded(endpoint.absent(SimpleNamespace(after=None)))
    assert all_items(own_client, table_name) == []


async def test_the_rest_of_a_history_that_is_gone_is_not_empty(gateway: Starlette) -> None:
    request = {"thread_id": "acme/1", "checkpoint_id": "2", "channels": ["log"], "after": "1"}
    answer = await send(gateway, "ada", "delta-channel-history", request)
    assert answer.status_code == 404
    assert "thread 'acme/1' was deleted while its history was read" in answer.text


# What happens meanwhile


class Others:
    """A table, and a request of ada's that is stepped through while others do something."""

    def __init__(self, codec: Codec | None = None) -> None:
        """Start with an empty table."""
        self.harness = Harness()
        self.codec = codec

    def storage(self) -> Any:
        """The storage of a process that remembers nothing."""
        return replace(self.harness.process(codec=self.codec).storage, owner_key=b"the key of owners")

    def owned(self, thread: str, owner: str | None) -> None:
        """Let somebody create a thread."""
        self.harness.run(set_thread(self.storage(), thread, owner, None, None))

    def put(self, checkpoint_id: str, thread: str) -> None:
        """Let somebody store a checkpoint."""
        self.harness.run(
            put_core(self.storage(), thread_config(thread), checkpoint_of(checkpoint_id, {}), {}, {})
        )

    def begin(self) -> Run[Any]:
        """Begin to check a request that creates a thread."""
        return self.harness.begin(serving.admitted(self.storage(), "ada", ["1"], "1"))


@pytest.mark.parametrize("owner", ["bob", None])
def test_a_thread_that_becomes_another_s_in_between_is_refused(owner: str | None) -> None:
    others = Others()
    request = others.begin()
    # It has read that there is no such thread.
    request.go_on()
    others.owned("1", owner)
    with pytest.raises(ProblemError, match="another owner"):
        request.finish()


def test_a_thread_that_is_deleted_as_often_as_it_is_created_is_not_waited_for_for_ever() -> None:
    others = Others()
    request = others.begin()

    def go_on() -> None:
        while not request.done:
            request.go_on()
            if others.harness.items("T", "1"):
                others.harness.run(delete_thread(others.storage(), "1"))

    with pytest.raises(PinnedEpochError):
        go_on()


def test_what_is_stored_is_stored_under_the_thread_that_was_checked() -> None:
    others = Others()
    others.owned("1", "ada")
    [item] = others.harness.items("T", "1").values()
    assert others.begin().finish()["1"].epoch == items.binary(item, items.EPOCH)
    # Nobody builds on a pending epoch, so it begins here.
    others.harness.change(item, pending={"N": "1"})
    assert others.begin().finish()["1"].epoch
    [item] = others.harness.items("T", "1").values()
    assert "pending" not in item


CHANGES: dict[str, Any] = {
    "put": checkpointed("1"),
    "put-writes": stored("1", writes=[["x", {"type": "bytes", "data": noise(200_000)}]]),
    "set-thread": {"thread_id": "1", "title": "mine"},
    "copy-thread": {"source_thread_id": "1", "target_thread_id": "2"},
    "copy-thread to it": {"source_thread_id": "source", "target_thread_id": "1"},
    "prune": {"thread_id": "1"},
    "delete-thread": {"thread_id": "1"},
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_thread_that_becomes_another_s_after_it_was_checked_is_neither_copied_nor_changed(
    change: str,
) -> None:
    others = Others()
    for thread in ("1", "source"):
        others.owned(thread, "ada")
        others.put("1", thread)
    taken = list[Any]()

    async def run(operation: Op[Any], what: str) -> Any:
        if what != "check_owner" and not taken:
            others.harness.run(delete_thread(others.storage(), "1"))
            others.owned("1", "bob")
            others.put("2", "1")
            taken.append(others.harness.items("", "1"))
        return others.harness.run(operation)

    endpoint = BY_NAME[change.partition(" ")[0]]
    reach = serving.Reach(Principal("ada", rights=RIGHTS, owner="ada"))
    arguments = endpoint.decoded(to_json(CHANGES[change], bytes_mode="base64"), reach)
    it = replace(served_on(others.storage()), who=reach.who)
    with pytest.raises(ProblemError, match="another owner"):
        await serving.served(endpoint, arguments, reach.named, it, run)
    # Nothing of it is acknowledged, and the next deletion takes what was written of it.
    [before] = taken
    assert before == {name: others.harness.items("", "1").get(name) for name in before}
    assert others.harness.items("C#", "2") == {}


@pytest.mark.parametrize("name", ["delete-thread", "prune"])
async def test_a_deletion_that_comes_late_keeps_its_owner_from_no_id(name: str) -> None:
    others = Others()
    others.owned("1", "ada")

    async def run(operation: Op[Any], what: str) -> Any:
        if what != "check_owner":
            others.harness.run(delete_thread(others.storage(), "1"))
        return others.harness.run(operation)

    endpoint = BY_NAME[name]
    reach = serving.Reach(Principal("ada", rights=RIGHTS, owner="ada"))
    arguments = endpoint.decoded(to_json({"thread_id": "1"}), reach)
    it = replace(served_on(others.storage()), who=reach.who)
    assert await serving.served(endpoint, arguments, reach.named, it, run) is None
    assert others.begin().finish().keys() == {"1"}


def test_what_a_dead_deletion_leaves_keeps_an_owner_from_the_id_until_it_expires() -> None:
    others = Others()
    others.harness.begin(delete_thread(others.storage(), "1")).until(asks("query")).drop()
    with pytest.raises(ProblemError, match="without an owner"):
        others.begin().finish()
    others.harness.now += ORPHAN_SECONDS
    assert others.begin().finish().keys() == {"1"}
    [item] = others.harness.items("T", "1").values()
    assert "expires_at" not in item


def test_an_expired_thread_stays_its_owner_s_until_it_is_gone() -> None:
    others = Others()
    others.owned("1", "bob")
    [item] = others.harness.items("T", "1").values()
    others.harness.change(item, expires_at={"N": str(int(others.harness.now))})
    with pytest.raises(ProblemError, match="another owner"):
        others.begin().finish()


@pytest.mark.parametrize("owner", ["a digest", "bob"])
def test_a_thread_is_not_reached_by_its_key_in_the_index(owner: str) -> None:
    """Whoever reads the table sees the digest of an owner, and may have it as a name; who writes can change it."""
    others = Others(ENCRYPTED)
    others.owned("1", "ada")
    others.owned("2", "bob")
    [ada] = others.harness.items("T", "1").values()
    [bob] = others.harness.items("T", "2").values()
    if owner == "bob":
        others.harness.change(ada, owner=bob["owner"])
    name = owner if owner == "bob" else ada["owner"]["S"]
    with pytest.raises(ProblemError, match="another owner"):
        others.harness.run(serving.admitted(others.storage(), name, ["1"], None))
    assert others.begin().finish().keys() == {"1"}


# What it costs


def test_it_costs_one_read_of_the_thread_item_for_each_request(connect: Connect, traffic: Traffic) -> None:
    counts = {}
    for name in ("ada", "acme"):
        talk = Conversation(connect(name), name)
        talk.put(step=0)
        traffic.clear()
        talk.put(step=1)
        counts[name] = list(traffic.operations)
        assert connect(name).get_tuple(thread_config(name)) is not None
        assert len(traffic.operations) - len(counts[name]) == 1 + (name == "ada")
    assert counts["ada"] == ["GetItem", *counts["acme"]]
