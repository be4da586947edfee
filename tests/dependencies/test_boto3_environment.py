"""The environment with the newest boto3 and no async client, since aiobotocore does not allow it yet."""

from __future__ import annotations

from packaging.version import Version

from tests.dependencies.pins import differing_versions, installed_version, pinned_versions


def test_what_is_installed_is_what_is_pinned() -> None:
    assert differing_versions("boto3") == {}


def test_it_is_of_the_line_with_new_retries_and_newer_than_what_aiobotocore_allows() -> None:
    other = pinned_versions("aiobotocore")
    for name in ("boto3", "botocore"):
        found = installed_version(name)
        assert found is not None
        assert found >= Version("1.44")
        assert found >= Version(other[name])
    assert installed_version("aiobotocore") is None
