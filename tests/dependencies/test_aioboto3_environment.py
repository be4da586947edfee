"""The environment with aioboto3, and with the boto3 and the aiobotocore that it pins."""

from __future__ import annotations

from packaging.version import Version

from tests.dependencies.pins import differing_versions, installed_version


def test_what_is_installed_is_what_is_pinned() -> None:
    assert differing_versions("aioboto3") == {}


def test_aioboto3_is_of_the_supported_line() -> None:
    found = installed_version("aioboto3")
    assert found is not None
    assert found >= Version("15")
