"""The bound on a label's values."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb.observe.bounded import BoundedTenants


def test_the_first_tenants_have_names_and_the_rest_share_one() -> None:
    tenants = BoundedTenants(2)
    assert [tenants.label(each) for each in ("a", "b", "c", "a", None, "d", "b")] == [
        "a", "b", "(other)", "a", "(none)", "(other)", "b",
    ]  # fmt: skip
