"""Tenant isolation by `infra/tenant.yaml`: whatever name tenant A makes up, it reaches no item of another tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.store.base import InvalidNamespaceError

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import INDEXES
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver
from tests.infra.authorization import (
    EVERYTHING,
    HASH_KEYS,
    Gate,
    Request,
    actions_of,
    is_allowed,
    requests_of,
)
from tests.infra.conftest import Behind, for_table
from tests.infra.rendering import Node
from tests.infra.stacks import TABLE_STACK, stack_of
from tests.support.checkpoints import all_items, noise
from tests.support.conversation import config_of, converse
from tests.support.examples import percent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLE = TABLE_STACK.outputs["TableArn"]


def policy_of(tenant: str) -> Node:
    """The rendered policy of one tenant; of the empty name, that of the session tag."""
    stack = stack_of("tenant.yaml", Tenant=tenant)
    assert stack.exports == {"beside-TenantPolicyArn": "arn:aws:iam::123456789012:policy/beside-TenantPolicy"}
    document: Node = stack.properties("TenantPolicy")["PolicyDocument"]
    return document


def gate_of(tenant: str, table_name: str, *beside: Node) -> Gate:
    """A gate that lets through what the tenant's policy allows, with others beside it."""
    return Gate([for_table(document, table_name) for document in (policy_of(tenant), *beside)])


AGENT, OPERATOR = (
    TABLE_STACK.properties(f"{name}Policy")["PolicyDocument"] for name in ("Agent", "Operator")
)
BESIDE: dict[str, list[Node]] = {"alone": [], "agent": [AGENT], "operator": [OPERATOR], "all": [EVERYTHING]}

LARGE = {"text": noise(200_000).hex()}
ENTRY = (("node",), "key")


def _configuration(thread_id: str, **ids: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **ids}}


def _use_cache(cache: DynamoDBCache[Any]) -> None:
    """Reads and writes that are denied are logged only."""
    assert cache.get([ENTRY]) == {}
    cache.set({ENTRY: ("forged", None)})
    cache.clear([ENTRY[0]])


# What is done with a name that was made up: with a saver as a thread or owner, with a store as a namespace, with a
# cache as its prefix.
Attack: TypeAlias = Callable[[Any, str], object]
OF_SAVER: list[Attack] = [
    lambda saver, name: saver.get_tuple(_configuration(name)),
    lambda saver, name: saver.get_tuple(_configuration("tenant-a/mine", checkpoint_ns=name)),
    lambda saver, name: saver.put(
        _configuration(name), empty_checkpoint(), {"source": "update", "step": 9, "parents": {}}, {}
    ),
    lambda saver, name: list(saver.list(_configuration(name))),
    lambda saver, name: saver.put_writes(
        _configuration(name, checkpoint_id="1"), [("messages", "forged")], "task"
    ),
    lambda saver, name: saver.delete_thread(name),
    lambda saver, name: saver.prune([name]),
    lambda saver, name: saver.copy_thread(name, "tenant-a/copy"),
    lambda saver, name: saver.copy_thread("tenant-a/mine", name),
    lambda saver, name: saver.threads(owner=name),
]
OF_STORE: list[Attack] = [
    lambda store, name: store.get((name, "bob"), "secret"),
    lambda store, name: store.put((name, "bob"), "secret", {"forged": True}),
    lambda store, name: store.put((name,), "secret", LARGE),
    lambda store, name: store.delete((name, "bob"), "secret"),
    lambda store, name: store.search((name,)),
    lambda store, name: store.list_namespaces(prefix=(name,)),
    lambda store, name: store.delete_namespace((name,)),
    lambda store, name: list(store.export_items((name,))),
]
ATTACKS: list[tuple[type, Attack]] = [
    *((DynamoDBSaver, each) for each in OF_SAVER),
    *((DynamoDBStore, each) for each in OF_STORE),
    (DynamoDBCache, lambda cache, _: _use_cache(cache)),
]

# Pieces out of which an attacker would build a name: the tenants' names, everything that separates or escapes
# anything in a key, IAM's wildcards and variables, and characters that look like the separators.
NAMES = ["tenant-a", "tenant-b", "secret", "A", "-", "T", "C#", "S#", "N#", ".."]
SYNTAX = ["/", "#", "%", "%2F", "%2f", "%23", "*", "?", "${*}", "${aws:userid}", "|", ":", " ", "\x00", "\n"]
LOOKALIKES = ["\uff0f", "\u2044"]
PIECES = st.sampled_from([*NAMES, *SYNTAX, *LOOKALIKES])
IDS = st.lists(PIECES, min_size=1, max_size=6).map("".join) | st.text(min_size=1, max_size=20)


def of_others(client: DynamoDBClient, table_name: str) -> list[dict[str, Any]]:
    """What is in a table beside the attacker's items."""
    return [item for item in all_items(client, table_name) if not item["PK"]["S"].startswith("tenant-a/")]


@pytest.fixture
def foreign(behind: Behind, client: DynamoDBClient, table_name: str) -> list[dict[str, Any]]:
    """Let both tenants have a thread, and the other one all that there is; give what the other one has."""
    everybody = Gate([EVERYTHING])
    saver = behind(everybody)
    for thread in ("tenant-a/mine", "tenant-b/secret"):
        converse(saver, config_of(thread))
    saver.set_thread("tenant-b/secret", owner="tenant-b/bob", title="Trains")
    store = behind(everybody, DynamoDBStore)
    store.put(("tenant-b", "bob"), "secret", LARGE)
    store.put(("tenant-b",), "secret", {})
    behind(everybody, DynamoDBCache, prefix=("tenant-b",)).set({ENTRY: ("secret", None)})
    return of_others(client, table_name)


@pytest.fixture
def gate() -> Gate:
    """Give the gate of all examples, whose clients take long to make."""
    return Gate([])


# The gate decides before anything is sent, so one engine does.
@pytest.mark.engines("dynamodb-local")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=percent(150))
@given(name=IDS, attack=st.sampled_from(ATTACKS), beside=st.sampled_from(list(BESIDE)))
@example(name="tenant-b/secret", attack=ATTACKS[0], beside="alone")
@example(name="tenant-b/secret", attack=ATTACKS[0], beside="agent")
@example(name="tenant-b/secret", attack=ATTACKS[5], beside="agent")
@example(name="tenant-b/secret", attack=ATTACKS[7], beside="operator")
@example(name="tenant-b/secret", attack=ATTACKS[8], beside="all")
@example(name="tenant-a/#tenant-b/secret", attack=ATTACKS[0], beside="alone")
@example(name="tenant-a/../tenant-b/secret", attack=ATTACKS[5], beside="all")
@example(name="tenant-a%2F", attack=ATTACKS[2], beside="agent")
@example(name="tenant-b/bob", attack=ATTACKS[9], beside="operator")
@example(name="tenant-a/../tenant-b/bob", attack=ATTACKS[9], beside="all")
@example(name="tenant-b", attack=ATTACKS[10], beside="alone")
@example(name="tenant-b", attack=ATTACKS[11], beside="agent")
@example(name="tenant-b", attack=ATTACKS[14], beside="operator")
@example(name="tenant-b", attack=ATTACKS[16], beside="all")
@example(name="tenant-a/../tenant-b", attack=ATTACKS[10], beside="all")
@example(name="tenant-b", attack=ATTACKS[18], beside="all")
@example(name="tenant-a#", attack=ATTACKS[18], beside="operator")
def test_no_crafted_name_reaches_another_tenant(
    foreign: list[dict[str, Any]],
    gate: Gate,
    behind: Behind,
    client: DynamoDBClient,
    table_name: str,
    name: str,
    attack: tuple[type, Attack],
    beside: str,
) -> None:
    """Every request that the policy lets through is about items of the attacker, and the others' are untouched."""
    gate.documents = gate_of("tenant-a", table_name, *BESIDE[beside]).documents
    gate.allowed, gate.refused = [], []
    kind, act = attack
    is_own = name.startswith("tenant-a/") if kind is DynamoDBSaver else name == "tenant-a"
    outcome: Exception | None = None
    try:
        act(behind(gate, kind, **({"prefix": (name,)} if kind is DynamoDBCache else {})), name)
    except (CheckpointerError, InvalidNamespaceError) as error:
        outcome = error
    if isinstance(outcome, CheckpointerConfigurationError):
        assert error_code(outcome.__cause__) == "AccessDeniedException"
        assert not is_own
    elif outcome is None:
        assert is_own or act is OF_SAVER[1]
    else:
        # The name itself was refused before anything was sent: a lone surrogate, say.
        assert not gate.refused
    assert all(key.startswith("tenant-a/") for request in gate.allowed for key in request.leading_keys)
    assert all(request.leading_keys for request in gate.allowed)
    assert of_others(client, table_name) == foreign


def reads(*keys: str) -> Request:
    """A BatchGetItem of items with these partition keys."""
    items = [{"PK": {"S": key}, "SK": {"S": "T"}} for key in keys]
    body = {"RequestItems": {TABLE: {"Keys": items}}}
    [request] = requests_of("BatchGetItem", body)
    return request


def lists(owner: str) -> Request:
    """A Query of an owner's threads."""
    body = {
        "TableName": TABLE,
        "IndexName": "owner-index",
        "KeyConditionExpression": "#o = :o",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":o": {"S": owner}},
    }
    [request] = requests_of("Query", body)
    return request


@given(tenant=st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), other=IDS)
@example(tenant="a", other="ab")
@example(tenant="a", other="a")
@example(tenant="a.", other="ab")
def test_prefix_of_one_tenant_is_never_that_of_another(tenant: str, other: str) -> None:
    """The slash ends the prefix and no name holds one, so "a" never reaches the threads of "ab"."""
    name = other.replace("/", "")
    assert is_allowed([policy_of(tenant)], reads(f"{name}/thread#")) == (name == tenant)


beside_others = pytest.mark.parametrize("beside", BESIDE.values(), ids=list(BESIDE))


def _of(operation: str, **body: Any) -> Request:
    [request] = requests_of(operation, {"TableName": TABLE, **body})
    return request


OUT_OF_REACH = [
    # What names no partition.
    *(_of(each) for each in ("Scan", "DescribeTable", "DeleteTable", "CreateBackup", "PartiQLSelect")),
    *(_of(f"{each}TableToPointInTime") for each in ("Export", "Restore")),
    *(_of("Scan", IndexName=each) for each in INDEXES),
    *(
        _of(
            "Query",
            IndexName=index,
            KeyConditionExpression=f"{HASH_KEYS[index]} = :k",
            ExpressionAttributeValues={":k": {"S": "tenant-a/1"}},
        )
        for index in ("run_id-index", "day-index")
    ),
    # What belongs to the table.
    Request("dynamodb:GetRecords", f"{TABLE}/stream/2026-11-22T00:00:00.000", {}),
    Request("dynamodb:RestoreTableFromBackup", f"{TABLE}/backup/01", {}),
    Request("dynamodb:DescribeExport", f"{TABLE}/export/01", {}),
    # The conditions on keys say nothing where there is none; it is the Null conditions that refuse it.
    *(Request(each, TABLE, {}) for each in actions_of(policy_of("tenant-a"))),
    # One foreign key in a batch.
    reads("tenant-a/1#", "tenant-b/1#"),
    reads("tenant-b/1#", "tenant-a/1#"),
]


@beside_others
def test_nothing_but_whole_requests_for_own_partitions_is_allowed(beside: list[Node]) -> None:
    policies = [policy_of("tenant-a"), *beside]
    assert is_allowed(policies, reads("tenant-a/1#", "tenant-a/2#ns"))
    assert [each for each in OUT_OF_REACH if is_allowed(policies, each)] == []


def test_what_a_tenant_writes_under_another_ones_name_is_not_listed(
    behind: Behind, make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    """IAM does not see attributes, so a tenant's own client may write any owner into its own items."""
    gate = gate_of("tenant-a", table_name)
    attacker = behind(gate)
    with pytest.raises(CheckpointerError, match="'tenant-b/'"):
        attacker.set_thread("tenant-a/spam", owner="tenant-b/bob")
    attacker.set_thread("tenant-a/spam", owner="tenant-a/ada", title="Spam")
    [item] = [each for each in all_items(client, table_name) if each["SK"] == {"S": "T"}]
    client.put_item(TableName=table_name, Item={**item, "owner": {"S": "tenant-b/bob"}})
    assert make_saver().threads(owner="tenant-b/bob").threads == []


@beside_others
def test_another_table_is_nothing_to_the_tenants_policy(beside: list[Node]) -> None:
    """It neither allows nor denies it: what else the role may do is for its other policies to say."""
    request = Request("dynamodb:Scan", TABLE + "-2", {})
    assert is_allowed([policy_of("tenant-a"), *beside], request) is (EVERYTHING in beside)


@pytest.mark.parametrize(
    ("tag", "key", "allowed"),
    [
        ("tenant-a", "tenant-a/1#", True),
        ("tenant-a", "tenant-b/1#", False),
        ("tenant-a", "tenant-ab/1#", False),
        ("tenant-a/b", "tenant-a/b/1#", False),
        ("", "/1#", False),
        (None, "/1#", False),
        (None, "${aws:PrincipalTag/tenant}/1#", False),
    ],
)
@beside_others
def test_session_tag_names_the_tenant(tag: str | None, key: str, allowed: bool, beside: list[Node]) -> None:
    tags = {} if tag is None else {"aws:PrincipalTag/tenant": [tag]}
    for request in (reads(key), lists(key.removesuffix("1#") + "ada")):
        tagged = Request(request.action, request.resource, {**request.context, **tags})
        assert is_allowed([policy_of(""), *beside], tagged) is allowed


@pytest.mark.parametrize("tag", [None, ""])
def test_caller_without_tenant_is_denied_whatever_iam_makes_of_the_missing_variable(tag: str | None) -> None:
    """IAM's documents leave open whether a condition on a variable without a value holds, so nothing rests on it."""
    document = policy_of("")
    sure = [each for each in document["Statement"] if "PrincipalTag/tenant}" not in str(each)]
    request = reads("tenant-a/1#")
    tags = {} if tag is None else {"aws:PrincipalTag/tenant": [tag]}
    tagged = Request(request.action, request.resource, {**request.context, **tags})
    assert not is_allowed([{**document, "Statement": sure}, EVERYTHING], tagged)
