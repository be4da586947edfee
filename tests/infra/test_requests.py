"""What policies, endpoints and alarms have to cover, derived from the requests that the code sends.

Every call of the table in tests/support/calls.py is made, and its requests are recorded. A policy has to allow those of
the kinds of calls that its users may make, and no other action or index. So a new request, method or index cannot be
forgotten in one of them.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, TypeAlias, get_args

import pytest

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._format.schema import INDEXES
from langgraph.store.dynamodb import DynamoDBStore
from tests.infra.authorization import EVERYTHING, Gate, Request, actions_of, is_allowed
from tests.infra.conftest import for_table
from tests.infra.stacks import stack_of
from tests.infra.test_alarms import operations
from tests.infra.test_policies import DOCUMENTS
from tests.support.calls import CALLS, OF_TENANTS, OWNER, RUN, TENANT, THREAD, Kind, called
from tests.support.conversation import config_of, converse
from tools.engine import Engine

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

# What the users of each policy may do.
READS: set[Kind] = {"read", "read an owner's", "read a run", "read all memories", "warm up"}
USERS: dict[str, set[Kind]] = {
    "Agent": {*READS, "write", "delete", "delete runs"},
    "Runner": {"read", "write", "warm up"},
    "Operator": {*READS, "read all threads", "scan", "delete", "delete runs"},
    "Reader": {*READS, "read all threads"},
    "Tenant": {*OF_TENANTS},
}
Recorded: TypeAlias = dict[Kind, list[Request]]


@pytest.fixture
def recorded(engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Give the requests of each kind of calls, which are made in the order of a thread's life."""
    monkeypatch.setattr(limits, "ACTIVITY_SECONDS", 0)
    found: Recorded = {each: [] for each in get_args(Kind)}
    gate = Gate([EVERYTHING])
    # Expiry is extended, and a thread's last activity touched, by requests of their own.
    options: Any = {
        "session": gate.session(),
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
        for run_id in (RUN, "run-2"):
            converse(saver, config_of(THREAD, run_id=run_id))
        found["write"], gate.allowed = gate.allowed, []
        for made, component in ((saver, "checkpointer"), (store, "store"), (cache, "cache")):
            for name, row in CALLS[component].items():
                if row.kind != "none":
                    asyncio.run(called(made, component, name))
                    found[row.kind] += gate.allowed
                    gate.allowed = []
    return found


def places_of(requests: Iterable[Request]) -> set[tuple[str, str]]:
    """The actions of requests, each with the index that it is for."""
    return {(each.action, each.resource.partition("/index/")[2]) for each in requests}


def test_policies_allow_what_their_users_send_and_nothing_else(recorded: Recorded, table_name: str) -> None:
    for policy, kinds in USERS.items():
        document = for_table(DOCUMENTS[policy], table_name)
        sent = [request for kind in kinds for request in recorded[kind]]
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
    stack = stack_of("ecs.yaml", RouteTableIds="rtb-1")
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
