"""Tenants: whatever field of whatever endpoint can name a thread, another tenant's is refused before anything is read.

The requests are made from the models, so a field or an endpoint that is added tomorrow is tried without a line here.
"""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import Principal, app, thread_calls
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint, endpoints_of
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS
from tests.gateway.conftest import MakeClient, Script
from tests.gateway.requests import example, paths_of_texts, replaced

ENDPOINTS = endpoints_of(thread_calls)
MINE, OTHERS = "acme/1", ("other/1", "acme2/1", "acme", "Acme/1", "/acme/1")
ACME = Principal("acme-agents", "acme", RIGHTS)


def named_by(path: tuple[str | int, ...]) -> str | None:
    """What a field names: a thread, an owner or nothing of both."""
    field = str(next(each for each in reversed(path) if isinstance(each, str)))
    return "thread" if "thread_" in field else "owner" if field == "owner" else None


FIELDS = [
    (endpoint, path, kind)
    for endpoint in ENDPOINTS
    for path in paths_of_texts(example(endpoint))
    if (kind := named_by(path)) is not None
]


@pytest.mark.parametrize(
    ("endpoint", "path", "kind"),
    FIELDS,
    ids=[f"{each.name} {'.'.join(map(str, path))}" for each, path, _ in FIELDS],
)
async def test_every_field_that_names_a_thread_or_an_owner_is_checked(
    endpoint: Endpoint[Any], path: tuple[str | int, ...], kind: str, make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=ACME)
    mine = example(endpoint, MINE)
    for other in (*OTHERS, "ada"):
        answer = await client.post(f"/checkpoints/{endpoint.name}", json=replaced(mine, path, other))
        assert answer.status_code == 403, other
        assert f" {kind} that is not of the tenant" in answer.json()["detail"]
        # It says what the tenant's own begin with, and does not repeat what was asked.
        assert "thread_prefix='acme/'" in answer.json()["detail"]
        assert f"{other!r}" not in answer.json()["detail"]
    assert script.asked == []


def test_threads_and_owners_are_named_where_they_can_be() -> None:
    naming = {kind: {each.name for each, _, own in FIELDS if own == kind} for kind in ("thread", "owner")}
    begin_a_thread = {"copy-thread", "put", "put-writes", "set-thread"}
    assert naming["owner"] == {"delete-owner", "threads", *begin_a_thread}
    assert {each.name for each in ENDPOINTS} - naming["thread"] == {"delete-owner", "threads"}


@pytest.mark.parametrize("owner", ["", "x\ud800", "a" * 3000])
def test_what_is_no_owner_binds_nobody(owner: str) -> None:
    with pytest.raises(CheckpointerInputError):
        Principal("one", "acme", owner=owner)


def test_an_owner_of_no_tenant_cannot_name_one() -> None:
    with pytest.raises(CheckpointerInputError, match="owner has a slash"):
        Principal("one", owner="acme/ada")
    assert Principal("one", "acme", owner="other/ada").owner_name == "acme/other/ada"


@pytest.mark.parametrize(
    "endpoint", [each for each in app.ENDPOINTS if each.right is not None], ids=lambda each: each.name
)
@pytest.mark.parametrize("right", sorted(RIGHTS))
async def test_a_right_is_for_its_endpoints_only(
    endpoint: Endpoint[Any], right: Any, make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=Principal("one", rights=frozenset({right})))
    answer = await client.post(endpoint.path, json=example(endpoint))
    if right == endpoint.right:
        assert answer.status_code == 200, answer.text
        assert [type(each) for each in script.asked] == [endpoint.arguments]
    else:
        assert answer.status_code == 403
        assert f"needs the right to {endpoint.right}" in answer.json()["detail"]
        assert script.asked == []


READ, BOTH = frozenset({"read"}), frozenset({"read", "administer"})


@pytest.mark.parametrize(
    ("who", "rights", "name", "request_", "is_served"),
    [
        ({}, {"read", "write"}, "threads", {}, False),
        ({}, {"administer"}, "threads", {}, False),
        ({}, RIGHTS, "threads", {}, True),
        ({"tenant": "acme"}, RIGHTS, "threads", {}, False),
        ({}, READ, "list", {}, False),
        ({}, BOTH, "list", {}, True),
        ({}, {"administer"}, "list", {}, False),
        ({}, READ, "list", {"filter": {"run_id": "r"}}, True),
        ({}, READ, "list", {"filter": {"run_id": 7}}, False),
        ({}, READ, "list", {"filter": {"run_id": None}}, False),
        ({}, READ, "list", {"filter": {"step": 1}}, False),
        # The index has no such key, so these are scans, too.
        ({}, READ, "list", {"filter": {"run_id": ""}}, False),
        ({}, READ, "list", {"filter": {"run_id": "r" * 2049}}, False),
        ({"tenant": "acme"}, BOTH, "list", {"filter": {"run_id": "é" * 1025}}, False),
        ({}, BOTH, "list", {"filter": {"run_id": ""}}, True),
        ({"tenant": "acme"}, BOTH, "list", {}, False),
        ({"tenant": "acme"}, BOTH, "list", {"filter": {"step": 1}}, False),
        ({"tenant": "acme"}, READ, "list", {"filter": {"run_id": "r"}}, True),
        ({"tenant": "acme"}, READ, "list", {"filter": {"run_id": ["r"]}}, False),
        ({"tenant": "acme", "owner": "ada"}, RIGHTS, "list", {"filter": {"run_id": "r"}}, False),
        # Runs may have stored in threads of others.
        ({"tenant": "acme"}, RIGHTS, "delete-for-runs", {"run_ids": ["r"]}, False),
        ({"tenant": "acme", "owner": "ada"}, RIGHTS, "delete-for-runs", {"run_ids": ["r"]}, False),
    ],
)
async def test_what_is_about_all_threads_is_for_administrators_of_all_and_runs_for_everybody(
    who: Any, rights: Any, name: str, request_: Any, is_served: bool, make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=Principal("one", rights=frozenset(rights), **who))
    answer = await client.post(f"/checkpoints/{name}", json=request_)
    assert (answer.status_code, len(script.asked)) == ((200, 1) if is_served else (403, 0))


async def test_metrics_are_for_administrators_of_all(make_client: MakeClient) -> None:
    for principal, status in (
        (ACME, 403),
        (Principal("agents"), 403),
        (Principal("ada", rights=RIGHTS, owner="ada"), 403),
        (Principal("operators", rights=frozenset({"administer"})), 200),
    ):
        assert (await make_client(principal=principal).get("/metrics")).status_code == status
