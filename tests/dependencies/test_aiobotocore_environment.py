"""The environment with the newest aiobotocore and boto3, which is the one that langchain-aws needs."""

from __future__ import annotations

import importlib

from packaging.version import Version

from tests.dependencies.pins import differing_versions, installed_version, pinned_versions


def test_what_is_installed_is_what_is_pinned() -> None:
    assert differing_versions("aiobotocore") == {}


def test_langchain_aws_is_the_recent_one_and_can_be_imported_beside_the_saver() -> None:
    found = installed_version("langchain-aws")
    assert found is not None
    assert found >= Version("1.9")
    assert importlib.import_module("langchain_aws").ChatBedrockConverse
    assert importlib.import_module("langgraph.checkpoint.dynamodb").DynamoDBSaver


def test_it_is_newer_than_what_aioboto3_allows() -> None:
    older = pinned_versions("aioboto3")
    for name in ("aiobotocore", "boto3", "botocore"):
        found = installed_version(name)
        assert found is not None
        assert found > Version(older[name])
    assert installed_version("aioboto3") is None
