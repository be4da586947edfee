"""What policies, endpoints and alarms have to cover, derived from the requests that the code sends.

Every method of saver, store and cache is called, and each of its requests recorded. A policy has to allow those of the
methods that its users may call, and no other action or index. So a new request, method or index cannot be forgotten in
one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
import pytest

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import INDEXES, table_schema
from langgraph.checkpoint.dynamodb._operations import threads
from langgraph.store.dynamodb import DynamoDBStore
from tests.infra.authorization import HASH_KEYS, Gate, Request, actions_of, is_allowed
from tests.infra.conftest import for_table
from tests.infra.conversation import config_of, converse
from tests.infra.stacks import stack_of
from tests.infra.test_alarms import operations
from tests.infra.test_policies import DOCUMENTS, TENANT
from tests.infra.test_tenants import ENTRY, EVERYTHING, LARGE

if TYPE_CHECKING:
    from tools.engine import Engine

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

# All names begin with the tenant's, so that its policy can be judged by the same requests.
THREAD, OWNER = f"{TENANT}/thread", f"{TENANT}/ada"
MEMORIES = (TENANT, "ada")
Everything: TypeAlias = "tuple[DynamoDBSaver, DynamoDBStore, DynamoDBCache[Any]]"
Call: TypeAlias = "Callable[[DynamoDBSaver, DynamoDBStore, DynamoDBCache[Any]], object]"


def _put(saver: DynamoDBSaver, *_: object) -> None:
    for run_id in ("run-1", "run-2"):
        converse(saver, config_of(THREAD, run_id=run_id))


def _lock(saver: DynamoDBSaver, *_: object) -> None:
    with saver.thread_lock(THREAD):
        pass


def _where(saver: DynamoDBSaver) -> Any:
    found = saver.get_tuple(config_of(THREAD))
    assert found is not None
    return found.config


# By the method, and what tells two calls of it apart. The order is that of a thread's life.
READS: dict[str, Call] = {
    "saver.get_tuple": lambda saver, *_: saver.get_tuple(config_of(THREAD)),
    "saver.get": lambda saver, *_: saver.get(config_of(THREAD)),
    "saver.list": lambda saver, *_: list(saver.list(config_of(THREAD))),
    "saver.runs": lambda saver, *_: saver.runs(THREAD),
    "saver.get_delta_channel_history": lambda saver, *_: saver.get_delta_channel_history(
        config=_where(saver), channels=["messages"]
    ),
    "store.get": lambda _, store, __: store.get(MEMORIES, "large"),
    "store.search": lambda _, store, __: store.search(MEMORIES),
    "store.list_namespaces": lambda _, store, __: store.list_namespaces(prefix=MEMORIES),
    "store.export_items": lambda _, store, __: list(store.export_items(MEMORIES)),
    "cache.get": lambda *all_: all_[2].get([ENTRY]),
}
# Any answer will do, so a tenant may be refused, whose table has no partition that every tenant may read.
WARM_UP: dict[str, Call] = {
    "saver.warm_up": lambda saver, *_: saver.warm_up(),
    "store.warm_up": lambda _, store, __: store.warm_up(),
    "cache.warm_up": lambda *all_: all_[2].warm_up(),
}
OF_OWNER: dict[str, Call] = {"saver.threads of an owner": lambda saver, *_: saver.threads(owner=OWNER)}
OF_RUN: dict[str, Call] = {
    "saver.list of a run": lambda saver, *_: list(saver.list(None, filter={"run_id": "run-1"}))
}
OF_ALL_MEMORIES: dict[str, Call] = {
    "store.search everywhere": lambda _, store, __: store.search(()),
    "store.list_namespaces of all": lambda _, store, __: store.list_namespaces(),
}
OF_ALL_THREADS: dict[str, Call] = {"saver.threads of all": lambda saver, *_: saver.threads()}
SCANS: dict[str, Call] = {"saver.list of all": lambda saver, *_: list(saver.list(None))}
WRITES: dict[str, Call] = {
    "saver.put": _put,
    "saver.put_writes": lambda saver, *_: saver.put_writes(_where(saver), [("messages", LARGE)], "task"),
    "saver.set_thread": lambda saver, *_: saver.set_thread(THREAD, owner=OWNER, title="Trains"),
    "saver.thread_lock": _lock,
    "saver.copy_thread": lambda saver, *_: saver.copy_thread(THREAD, f"{THREAD}-copy"),
    "store.put": lambda _, store, __: store.put(MEMORIES, "large", LARGE),
    "store.put_if": lambda _, store, __: store.put_if(MEMORIES, "new", {}, revision=None),
    "store.batch": lambda _, store, __: store.batch([]),
    "store.delete": lambda _, store, __: store.delete(MEMORIES, "large"),
    "store.import_items": lambda _, store, __: store.import_items(list(store.export_items(MEMORIES))),
    "cache.set": lambda *all_: all_[2].set({ENTRY: (1, None)}),
}
DELETIONS: dict[str, Call] = {
    "saver.prune": lambda saver, *_: saver.prune([THREAD]),
    "saver.delete_thread": lambda saver, *_: saver.delete_thread(f"{THREAD}-copy"),
    "store.sweep_ttl": lambda _, store, __: store.sweep_ttl((TENANT,)),
    "store.delete_namespace": lambda _, store, __: store.delete_namespace(MEMORIES),
    "cache.clear": lambda *all_: all_[2].clear([ENTRY[0]]),
}
DELETIONS_OF_RUNS: dict[str, Call] = {
    "saver.delete_for_runs": lambda saver, *_: saver.delete_for_runs(["run-1"])
}
CALLS = {
    **WRITES,
    **READS,
    **WARM_UP,
    **OF_OWNER,
    **OF_RUN,
    **OF_ALL_MEMORIES,
    **OF_ALL_THREADS,
    **SCANS,
    **DELETIONS_OF_RUNS,
    **DELETIONS,
}
# They send nothing themselves, or what others do; `setup` is for development, so no policy allows it.
OTHERS = {
    "close",
    "get_next_version",
    "setup",
    "start_ttl_sweeper",
    "stop_ttl_sweeper",
    "storage_with",
    "with_allowlist",
}
# What the users of each policy may call.
USERS: dict[str, list[dict[str, Call]]] = {
    "Agent": [WRITES, READS, WARM_UP, OF_OWNER, OF_RUN, OF_ALL_MEMORIES, DELETIONS, DELETIONS_OF_RUNS],
    "Runner": [WRITES, READS, WARM_UP],
    "Operator": [
        READS,
        WARM_UP,
        OF_OWNER,
        OF_RUN,
        OF_ALL_MEMORIES,
        OF_ALL_THREADS,
        SCANS,
        DELETIONS,
        DELETIONS_OF_RUNS,
    ],
    "Reader": [READS, WARM_UP, OF_OWNER, OF_RUN, OF_ALL_MEMORIES, OF_ALL_THREADS],
    "Tenant": [WRITES, READS, OF_OWNER, DELETIONS],
}
Recorded: TypeAlias = dict[str, list[Request]]


@pytest.fixture
def recorded(engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Give the requests of each call, in the order of a thread's life."""
    monkeypatch.setattr(threads, "ACTIVITY_SECONDS", 0)
    found: Recorded = {}
    gate, session = Gate([EVERYTHING]), boto3.Session()
    gate.guard(session)
    # Expiry is extended, and a thread's last activity touched, by requests of their own.
    options: Any = {
        "session": session,
        "endpoint_url": engine.endpoint_url,
        "region_name": engine.region_name,
    }
    cache: DynamoDBCache[Any] = DynamoDBCache(table_name, prefix=(TENANT,), **options)
    with (
        DynamoDBSaver(table_name, **options, ttl_seconds=3600) as saver,
        DynamoDBStore(table_name, **options) as store,
        cache,
    ):
        # The look for other savers asks for what some policies deny.
        saver.storage.cache.facts.is_shared = False
        for name, call in CALLS.items():
            call(saver, store, cache)
            found[name], gate.allowed = gate.allowed, []
    return found


def places_of(requests: Iterable[Request]) -> set[tuple[str, str]]:
    """The actions of requests, each with the index that it is for."""
    return {(each.action, each.resource.partition("/index/")[2]) for each in requests}


def test_every_method_is_called_here() -> None:
    methods = {
        f"{kind}.{name}"
        for kind, owner in (("saver", DynamoDBSaver), ("store", DynamoDBStore), ("cache", DynamoDBCache))
        for name, _ in inspect.getmembers(owner, callable)
        # A method of the event loop sends what the one beside it does.
        if not name.startswith("_") and name not in OTHERS and not hasattr(owner, name[1:])
    }
    assert methods == {name.split(" ")[0] for name in CALLS}


def test_policies_allow_what_their_users_send_and_nothing_else(recorded: Recorded, table_name: str) -> None:
    for policy, groups in USERS.items():
        document = for_table(DOCUMENTS[policy], table_name)
        sent = [request for group in groups for name in group for request in recorded[name]]
        assert [each for each in sent if not is_allowed([document], each)] == [], policy
        assert {action for action, _ in places_of(sent)} == actions_of(document), policy
        mine = {index for _, index in places_of(sent) if index}
        arn = sent[0].resource.partition("/index/")[0]
        # A query of the tenant's own, as far as the name of an index can tell.
        leading = {"dynamodb:LeadingKeys": [OWNER]}
        open_ = {
            index
            for index in INDEXES
            if is_allowed([document], Request("dynamodb:Query", f"{arn}/index/{index}", leading))
        }
        assert open_ == mine, policy


def test_endpoints_and_alarms_cover_what_anybody_sends(recorded: Recorded, table_name: str) -> None:
    sent = [request for requests in recorded.values() for request in requests]
    for template in ("gateway-ecs.yaml", "examples/ecs-agent/template.yaml"):
        stack = stack_of(template, RouteTableIds="rtb-1")
        [statement] = stack.properties("DynamoDBEndpoint")["PolicyDocument"]["Statement"]
        assert statement.pop("Principal") == "*"
        document = for_table({"Statement": [statement]}, table_name)
        assert [each for each in sent if not is_allowed([document], each)] == []
        elsewhere = [
            Request(each.action, f"{each.resource}-2", each.context)
            for each in sent
            if "/index/" not in each.resource
        ]
        assert not any(is_allowed([document], each) for each in elsewhere)
    actions = {
        f"dynamodb:{each}" for each in operations(stack_of("observability.yaml").properties("SystemErrors"))
    }
    assert actions == {action for action, _ in places_of(sent)}
    assert {index for _, index in places_of(sent) if index} == set(INDEXES)


def test_the_evaluator_knows_the_partition_key_of_every_index() -> None:
    schema = table_schema("any")
    keys = {
        each["IndexName"]: each["KeySchema"][0]["AttributeName"] for each in schema["GlobalSecondaryIndexes"]
    }
    assert {None: schema["KeySchema"][0]["AttributeName"], **keys} == HASH_KEYS
