"""Tenant isolation by `infra/tenant.yaml`: whatever id tenant A makes up, it reaches no item of another tenant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerError
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from tests.infra.authorization import Gate, Request, actions_of, is_allowed, requests_of
from tests.infra.conftest import MakeSaver, contents, for_table
from tests.infra.conversation import aconverse, config_of, converse
from tests.infra.rendering import Node, load, render
from tests.support.examples import percent
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

Saver: TypeAlias = BaseCheckpointSaver[Any]
SaverOf: TypeAlias = "Callable[..., DynamoDBSaver]"

TABLE_STACK = render(load("table.yaml"))
TEMPLATE = load("tenant.yaml")


def policy_of(tenant: str, **parameters: str) -> Node:
    """The rendered policy of one tenant; of the empty name, that of the session tag."""
    given_parameters = {"TableStackName": "checkpoints", "Tenant": tenant, **parameters}
    stack = render(TEMPLATE, given_parameters, stack_name="tenant", exports=TABLE_STACK.exports)
    assert stack.exports == {"tenant-TenantPolicyArn": "arn:aws:iam::123456789012:policy/tenant-TenantPolicy"}
    document: Node = stack.properties("TenantPolicy")["PolicyDocument"]
    return document


def gate_of(tenant: str, table_name: str, *beside: Node) -> Gate:
    """A gate that lets through what the tenant's policy allows, with others beside it."""
    return Gate([for_table(document, table_name) for document in (policy_of(tenant), *beside)])


AGENT, OPERATOR = (
    TABLE_STACK.properties(f"{name}Policy")["PolicyDocument"] for name in ("Agent", "Operator")
)
# More than any policy of the templates allows.
EVERYTHING: Node = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
BESIDE: dict[str, list[Node]] = {"alone": [], "agent": [AGENT], "operator": [OPERATOR], "all": [EVERYTHING]}


def reads(*keys: str) -> Request:
    """A BatchGetItem of items with these partition keys."""
    items = [{"PK": {"S": key}, "SK": {"S": "T"}} for key in keys]
    body = {"RequestItems": {TABLE_STACK.outputs["TableArn"]: {"Keys": items}}}
    [request] = requests_of("BatchGetItem", body, {})
    return request


async def test_a_process_that_looks_for_other_savers_is_denied_at_its_cold_start_only(
    saver_of: SaverOf, table_name: str
) -> None:
    gate = gate_of("tenant-a", table_name)
    saver = saver_of(gate)
    assert await saver.aget_tuple(config_of("tenant-a/new")) is None
    assert len(gate.refused) == 2
    converse(saver, config_of("tenant-a/talks"))
    assert await saver.aget_tuple(config_of("tenant-a/newer")) is None
    assert len(gate.refused) == 2


def lists(owner: str) -> Request:
    """A Query of an owner's threads."""
    body = {
        "TableName": TABLE_STACK.outputs["TableArn"],
        "IndexName": "owner-index",
        "KeyConditionExpression": "#o = :o",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":o": {"S": owner}},
    }
    [request] = requests_of("Query", body, {})
    return request


def _configuration(thread_id: str, namespace: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}


async def _list(saver: Saver, thread_id: str, namespace: str) -> None:
    async for _ in saver.alist(_configuration(thread_id, namespace)):
        pass


async def _put_writes(saver: Saver, thread_id: str, namespace: str) -> None:
    config = _configuration(thread_id, namespace)
    config["configurable"]["checkpoint_id"] = "1"
    await saver.aput_writes(config, [("messages", "forged")], "task")


Attack: TypeAlias = Callable[[Saver, str, str], Awaitable[object]]
ATTACKS: list[Attack] = [
    lambda saver, thread_id, namespace: saver.aget_tuple(_configuration(thread_id, namespace)),
    lambda saver, thread_id, namespace: saver.aput(
        _configuration(thread_id, namespace),
        empty_checkpoint(),
        {"source": "update", "step": 9, "parents": {}},
        {},
    ),
    _list,
    _put_writes,
    lambda saver, thread_id, _: saver.adelete_thread(thread_id),
    lambda saver, thread_id, _: saver.aprune([thread_id]),
    lambda saver, thread_id, _: saver.acopy_thread(thread_id, "tenant-a/mine"),
    lambda saver, thread_id, _: saver.acopy_thread("tenant-a/mine", thread_id),
]

# Pieces out of which an attacker would build an id: the tenants' names, everything that separates or escapes
# anything in a key, IAM's wildcards and variables, and characters that look like the separators.
NAMES = ["tenant-a", "tenant-b", "secret", "A", "-", "T", "C#", "S#", "N#", ".."]
SYNTAX = ["/", "#", "%", "%2F", "%2f", "%23", "*", "?", "${*}", "${aws:userid}", "|", ":", " ", "\x00", "\n"]
LOOKALIKES = ["\uff0f", "\u2044"]
PIECES = st.sampled_from([*NAMES, *SYNTAX, *LOOKALIKES])
IDS = st.lists(PIECES, min_size=1, max_size=6).map("".join) | st.text(min_size=1, max_size=20)


# The gate decides before anything is sent, so one engine does.
@pytest.mark.engines("dynamodb-local")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=percent(60))
@given(
    thread_id=IDS,
    namespace=IDS | st.just(""),
    attack=st.sampled_from(ATTACKS),
    sync=st.booleans(),
    beside=st.sampled_from(list(BESIDE)),
)
@example(thread_id="tenant-b/secret", namespace="", attack=ATTACKS[0], sync=False, beside="alone")
@example(thread_id="tenant-b/secret", namespace="", attack=ATTACKS[0], sync=False, beside="agent")
@example(thread_id="tenant-b/secret", namespace="", attack=ATTACKS[4], sync=True, beside="agent")
@example(thread_id="tenant-b/secret", namespace="", attack=ATTACKS[6], sync=False, beside="operator")
@example(thread_id="tenant-b/secret", namespace="", attack=ATTACKS[7], sync=False, beside="all")
@example(thread_id="tenant-a/#tenant-b/secret", namespace="", attack=ATTACKS[0], sync=False, beside="alone")
@example(thread_id="tenant-a/../tenant-b/secret", namespace="", attack=ATTACKS[4], sync=False, beside="all")
@example(thread_id="tenant-a%2F", namespace="", attack=ATTACKS[1], sync=False, beside="agent")
async def test_no_crafted_id_reaches_another_tenant(
    saver_of: SaverOf,
    make_saver: MakeSaver,
    client: DynamoDBClient,
    table_name: str,
    thread_id: str,
    namespace: str,
    attack: Attack,
    sync: bool,
    beside: str,
) -> None:
    """Every request that the policy lets through is about items of the attacker, and the others' are untouched."""
    owner = make_saver()
    for thread in ("tenant-a/mine", "tenant-b/secret"):
        if await owner.aget_tuple(config_of(thread)) is None:
            await aconverse(owner, config_of(thread))
    foreign = [item for item in contents(client, table_name) if not item["PK"]["S"].startswith("tenant-a/")]

    gate = gate_of("tenant-a", table_name, *BESIDE[beside])
    saver = saver_of(gate)
    side: Saver = SyncAsAsync(saver) if sync else saver
    outcome: Exception | None = None
    try:
        await attack(side, thread_id, namespace)
    except CheckpointerError as error:
        outcome = error
    if isinstance(outcome, CheckpointerConfigurationError):
        assert error_code(outcome.__cause__) == "AccessDeniedException"
        assert not thread_id.startswith("tenant-a/")
    elif outcome is None:
        assert thread_id.startswith("tenant-a/")
    else:
        # The id itself was refused before anything was sent: a lone surrogate, say.
        assert not gate.refused
    assert all(key.startswith("tenant-a/") for request in gate.allowed for key in request.leading_keys)
    assert all(request.leading_keys for request in gate.allowed)
    after = [item for item in contents(client, table_name) if not item["PK"]["S"].startswith("tenant-a/")]
    assert after == foreign


@given(tenant=st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), other=IDS)
@example(tenant="a", other="ab")
@example(tenant="a", other="a")
@example(tenant="a.", other="ab")
def test_prefix_of_one_tenant_is_never_that_of_another(tenant: str, other: str) -> None:
    """The slash ends the prefix and no name holds one, so "a" never reaches the threads of "ab"."""
    name = other.replace("/", "")
    assert is_allowed([policy_of(tenant)], reads(f"{name}/thread#")) == (name == tenant)


beside_others = pytest.mark.parametrize("beside", BESIDE.values(), ids=list(BESIDE))


@beside_others
def test_one_foreign_key_in_a_batch_refuses_the_batch(beside: list[Node]) -> None:
    documents = [policy_of("tenant-a"), *beside]
    assert is_allowed(documents, reads("tenant-a/1#", "tenant-a/2#ns"))
    assert not is_allowed(documents, reads("tenant-a/1#", "tenant-b/1#"))
    assert not is_allowed(documents, reads("tenant-b/1#", "tenant-a/1#"))


@pytest.mark.engines("dynamodb-local")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=percent(60))
@given(owner=IDS | st.none(), sync=st.booleans(), beside=st.sampled_from(list(BESIDE)))
@example(owner="tenant-b/bob", sync=False, beside="alone")
@example(owner="tenant-b/bob", sync=True, beside="agent")
@example(owner="tenant-b/bob", sync=False, beside="operator")
@example(owner="tenant-b/bob", sync=False, beside="all")
@example(owner="tenant-a/../tenant-b/bob", sync=False, beside="all")
@example(owner="tenant-a%2Fada", sync=False, beside="all")
@example(owner=None, sync=False, beside="all")
async def test_no_crafted_owner_lists_another_tenants_threads(
    saver_of: SaverOf, make_saver: MakeSaver, table_name: str, owner: str | None, sync: bool, beside: str
) -> None:
    operator = make_saver()
    for tenant, name in (("tenant-a", "ada"), ("tenant-b", "bob")):
        await operator.aset_thread(f"{tenant}/thread", owner=f"{tenant}/{name}", title="Trains")
    gate = gate_of("tenant-a", table_name, *BESIDE[beside])
    saver = saver_of(gate)
    found: list[str] = []
    outcome: Exception | None = None
    try:
        page = saver.threads(owner=owner) if sync else await saver.athreads(owner=owner)
        found = [each.thread_id for each in page.threads]
    except CheckpointerError as error:
        outcome = error
    if isinstance(outcome, CheckpointerConfigurationError):
        assert error_code(outcome.__cause__) == "AccessDeniedException"
        assert owner is None or not owner.startswith("tenant-a/")
    elif outcome is not None:
        assert not gate.refused
    assert found == (["tenant-a/thread"] if owner == "tenant-a/ada" else [])
    assert all(key.startswith("tenant-a/") for request in gate.allowed for key in request.leading_keys)


async def test_what_a_tenant_writes_under_another_ones_name_is_not_listed(
    saver_of: SaverOf, make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    """IAM does not see attributes, so a tenant's own client may write any owner into its own items."""
    gate = gate_of("tenant-a", table_name)
    attacker = saver_of(gate)
    with pytest.raises(CheckpointerError, match="'tenant-b/'"):
        await attacker.aset_thread("tenant-a/spam", owner="tenant-b/bob")
    await attacker.aset_thread("tenant-a/spam", owner="tenant-a/ada", title="Spam")
    [item] = [each for each in contents(client, table_name) if each["SK"] == {"S": "T"}]
    client.put_item(TableName=table_name, Item={**item, "owner": {"S": "tenant-b/bob"}})
    assert make_saver().threads(owner="tenant-b/bob").threads == []


@beside_others
@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("Scan", {}),
        ("Scan", {"IndexName": "run_id-index"}),
        ("Scan", {"IndexName": "owner-index"}),
        ("Scan", {"IndexName": "day-index"}),
        ("DescribeTable", {}),
        ("DeleteTable", {}),
        ("CreateBackup", {}),
        ("ExportTableToPointInTime", {}),
        ("RestoreTableToPointInTime", {}),
        ("PartiQLSelect", {}),
        (
            "Query",
            {
                "IndexName": "run_id-index",
                "KeyConditionExpression": "run_id = :r",
                "ExpressionAttributeValues": {":r": {"S": "tenant-a/run"}},
            },
        ),
        (
            "Query",
            {
                "IndexName": "day-index",
                "KeyConditionExpression": "active_day = :d",
                "ExpressionAttributeValues": {":d": {"S": "tenant-a/2026-01-01"}},
            },
        ),
    ],
)
def test_requests_that_name_no_partition_are_refused(operation: str, body: Node, beside: list[Node]) -> None:
    table = TABLE_STACK.outputs["TableArn"]
    [request] = requests_of(operation, {"TableName": table, **body}, {})
    assert not is_allowed([policy_of("tenant-a"), *beside], request)


@beside_others
@pytest.mark.parametrize(
    ("action", "below"),
    [
        ("GetRecords", "stream/2026-11-22T00:00:00.000"),
        ("RestoreTableFromBackup", "backup/01"),
        ("DescribeExport", "export/01"),
    ],
)
def test_what_belongs_to_the_table_is_refused(action: str, below: str, beside: list[Node]) -> None:
    request = Request(f"dynamodb:{action}", f"{TABLE_STACK.outputs['TableArn']}/{below}", {})
    assert not is_allowed([policy_of("tenant-a"), *beside], request)


@beside_others
@pytest.mark.parametrize("action", sorted(actions_of(policy_of("tenant-a"))))
def test_allowed_action_without_any_key_is_refused(action: str, beside: list[Node]) -> None:
    """The conditions on keys say nothing where there is none; it is the Null conditions that refuse it."""
    request = Request(action, TABLE_STACK.outputs["TableArn"], {})
    assert not is_allowed([policy_of("tenant-a"), *beside], request)


@beside_others
def test_another_table_is_nothing_to_the_tenants_policy(beside: list[Node]) -> None:
    """It neither allows nor denies it: what else the role may do is for its other policies to say."""
    request = Request("dynamodb:Scan", TABLE_STACK.outputs["TableArn"] + "-2", {})
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


def test_customer_key_can_be_used_through_dynamodb_only() -> None:
    key_arn = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    statement = policy_of("tenant-a", KmsKeyArn=key_arn)["Statement"][-1]
    assert statement["Resource"] == key_arn
    assert statement["Condition"] == {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}}
