"""`infra/tenant-role.yaml`: a broker names one tenant, whose session reaches what a policy with its name does.

That one saver for all tenants signs each request by its tenant is tested in tests/test_tenants.py.
"""

import json
from collections.abc import Mapping

import pytest

from tests.infra.authorization import Request, is_allowed
from tests.infra.rendering import load, render
from tests.infra.test_tenants import policy_of

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


def test_the_policy_of_the_session_tag_allows_what_that_of_a_name_allows() -> None:
    def allowed(tenant: str) -> str:
        statements = [each for each in policy_of(tenant)["Statement"] if each["Effect"] == "Allow"]
        keys = [each["Condition"]["ForAllValues:StringLike"] for each in statements]
        return json.dumps([[each["Action"], each["Resource"]] for each in statements] + keys)

    assert allowed("").replace("${aws:PrincipalTag/tenant}", "acme") == allowed("acme")
