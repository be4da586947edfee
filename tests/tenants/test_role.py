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


class Sts:
    """What is asked of STS, which moto answers."""

    def __init__(self) -> None:
        """Start without a request."""
        self.client: Any = boto3.client("sts", region_name="us-east-1")
        self.asked: list[dict[str, Any]] = []
        self.client.meta.events.register("before-parameter-build.sts", self._note)

    def _note(self, params: dict[str, Any], **_: Any) -> None:
        self.asked.append(dict(params))


@pytest.mark.parametrize("tenant", ["acme", "a", "A.b-c_d", "x" * 128])
def test_the_role_is_assumed_with_the_tenant_as_its_tag(tenant: str) -> None:
    with mock_aws():
        sts = Sts()
        credentials = TenantCredentials(AssumeTenantRole(ROLE, client=sts.client, duration_seconds=900))
        with credentials.tenant(tenant):
            current = credentials.current()
    (asked,) = sts.asked
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
