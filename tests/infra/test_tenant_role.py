"""`infra/tenant-role.yaml` and one saver for all tenants: a tenant's requests reach its own threads and no others."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.tenants import TenantCredentials
from tests.infra.authorization import Request, is_allowed
from tests.infra.rendering import load, render
from tests.infra.test_tenants import gate_of
from tests.support.conversation import config_of, converse
from tools.engine import Engine

BROKER = "arn:aws:iam::123456789012:role/service"
TENANTS_STACK = {"tenants-TenantPolicyArn": "arn:aws:iam::123456789012:policy/tenants-TenantPolicy"}
STACK = render(
    load("tenant-role.yaml"),
    {"TenantsStackName": "tenants", "BrokerRoleArn": BROKER},
    stack_name="role",
    exports=TENANTS_STACK,
)
ROLE = STACK.properties("TenantsRole")


def _is_trusted(action: str, tags: Mapping[str, str]) -> bool:
    (statement,) = ROLE["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": BROKER}
    allowed = {name: value for name, value in statement.items() if name != "Principal"}
    document = {"Statement": [{**allowed, "Resource": "*"}]}
    context = {f"aws:RequestTag/{name}": [value] for name, value in tags.items()}
    return is_allowed([document], Request(action, "role", {**context, "aws:TagKeys": list(tags)}))


def test_the_role_has_the_policy_of_the_session_tag() -> None:
    assert ROLE["ManagedPolicyArns"] == [*TENANTS_STACK.values()]
    assert ROLE["MaxSessionDuration"] == 3600


@pytest.mark.parametrize("action", ["sts:AssumeRole", "sts:TagSession"])
@pytest.mark.parametrize(
    ("tags", "trusted"),
    [
        ({"tenant": "acme"}, True),
        ({}, False),
        ({"tenant": ""}, False),
        ({"tenant": "acme/other"}, False),
        ({"tenant": "acme", "team": "x"}, False),
        ({"team": "acme"}, False),
    ],
)
def test_the_broker_names_one_tenant_and_nothing_else(
    action: str, tags: dict[str, str], *, trusted: bool
) -> None:
    assert _is_trusted(action, tags) == trusted
    assert not _is_trusted("sts:AssumeRoleWithSAML", tags)


def test_the_broker_may_assume_this_role_only() -> None:
    (statement,) = STACK.properties("BrokerPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert statement["Resource"] == STACK.outputs["TenantsRoleArn"]


def _fetch(tenant: str) -> Mapping[str, Any]:
    expiration = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    return {
        "AccessKeyId": tenant,
        "SecretAccessKey": "secret",
        "SessionToken": "token",
        "Expiration": expiration,
    }


@pytest.mark.engines("dynamodb-local")
def test_one_saver_reaches_the_threads_of_the_tenant_that_it_serves(
    engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests of one operation are judged one after the other.
    monkeypatch.setattr("langgraph.checkpoint.dynamodb._runtime.loops.PARALLEL_REQUESTS", 1)
    credentials, gate = TenantCredentials(_fetch), gate_of("", table_name)
    session = credentials.session()

    def sign(**_: object) -> None:
        """Let the gate judge the next request by the tenant whose credentials sign it."""
        gate.principal_tags = {"tenant": str(credentials.current().access_key)}

    session.events.register("before-parameter-build.dynamodb", sign)
    gate.guard(session)
    with DynamoDBSaver(
        table_name, session=session, endpoint_url=engine.endpoint_url, region_name=engine.region_name
    ) as saver:
        for tenant in ("red", "blue"):
            with credentials.tenant(tenant):
                converse(saver, config_of(f"{tenant}/1"))
        with credentials.tenant("red"):
            assert saver.get_tuple(config_of("red/1")) is not None
            for attack in (
                lambda: saver.get_tuple(config_of("blue/1")),
                lambda: saver.delete_thread("blue/1"),
                lambda: list(saver.list(config_of("blue/1"))),
            ):
                with pytest.raises(CheckpointerConfigurationError):
                    attack()
        with credentials.tenant("blue"):
            assert saver.get_tuple(config_of("blue/1")) is not None
