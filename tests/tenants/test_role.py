"""The broker, with moto in place of STS."""

from __future__ import annotations

import datetime
import re
from typing import Any

import boto3
import pytest
from moto import mock_aws

from langgraph.checkpoint.dynamodb.tenants import AssumeTenantRole, TenantCredentials

ROLE = "arn:aws:iam::123456789012:role/tenants"


@pytest.mark.parametrize("tenant", ["acme", "a", "A.b-c_d", "x" * 128])
def test_the_role_is_assumed_with_the_tenant_as_its_tag(tenant: str) -> None:
    requests: list[dict[str, Any]] = []
    with mock_aws():
        client = boto3.client("sts", region_name="us-east-1")
        client.meta.events.register(
            "before-parameter-build.sts", lambda params, **_: requests.append({**params})
        )
        credentials = TenantCredentials(AssumeTenantRole(ROLE, client=client, duration_seconds=900))
        with credentials.tenant(tenant):
            current = credentials.current()
    (asked,) = requests
    assert asked["RoleArn"] == ROLE
    assert asked["Tags"] == [{"Key": "tenant", "Value": tenant}]
    assert asked["DurationSeconds"] == 900
    assert re.fullmatch(r"[\w+=,.@-]{2,64}", asked["RoleSessionName"])
    assert str(current.access_key).startswith("ASIA")
    assert current.token
    assert current.account_id == "123456789012"


def test_a_client_is_made_once_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        assume = AssumeTenantRole(ROLE)
        for tenant in ("a", "b"):
            answer = assume(tenant)
            assert answer["Expiration"] > datetime.datetime.now(datetime.timezone.utc)
