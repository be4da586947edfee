"""What the tests of deployed programs share: an emulator, and the environment of a role in it."""

from __future__ import annotations

import json

import pytest

from tests.infra.conftest import Client, emulator
from tests.infra.rendering import ACCOUNT_ID, Node
from tools.engine import Engine

__all__ = ["emulator", "environment", "environment_of_role", "use"]


def environment(address: str, credentials: dict[str, str] | None = None) -> dict[str, str]:
    """The environment in which every client reaches an emulator."""
    return {
        **Engine("emulator", "emulator", address).environment(),
        "AWS_ENDPOINT_URL": address,
        **(credentials or {}),
    }


def environment_of_role(emulator: Client, name: str, *documents: Node) -> dict[str, str]:
    """Make a role with these policies; return the environment of whoever has assumed it."""
    iam = emulator("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT_ID}, "Action": "sts:AssumeRole"}
    trusting = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trusting)["Role"]["Arn"]
    for number, document in enumerate(documents):
        iam.put_role_policy(RoleName=name, PolicyName=f"{number}", PolicyDocument=json.dumps(document))
    given = emulator("sts").assume_role(RoleArn=role, RoleSessionName=name)["Credentials"]
    credentials = {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
    return environment(iam.meta.endpoint_url, credentials)


def use(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an environment to this process, whose default session has none yet."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
