"""Tenants: whatever field of whatever endpoint can name a thread, another tenant's is refused before anything is read.

The requests are made from the models, so a field or an endpoint that is added tomorrow is tried without a line here.
"""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS, Endpoint
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from tests.gateway.conftest import MakeClient, Script
from tests.gateway.requests import example, paths_of_texts, replaced

MINE, OTHERS = "acme/1", ("other/1", "acme2/1", "acme", "Acme/1", "/acme/1")
ACME = Principal("acme-agents", "acme", RIGHTS)
BY_NAME = {each.name: each for each in ENDPOINTS}


def names_a_thread(path: tuple[str | int, ...]) -> bool:
    """Whether a field is one that names a thread."""
    return "thread_" in str(next(each for each in reversed(path) if isinstance(each, str)))


FIELDS = [
    (endpoint, path)
    for endpoint in ENDPOINTS
    for path in paths_of_texts(example(endpoint.model))
    if names_a_thread(path)
]


@pytest.mark.parametrize(
    ("endpoint", "path"), FIELDS, ids=[f"{each.name} {'.'.join(map(str, path))}" for each, path in FIELDS]
)
async def test_every_field_that_names_a_thread_is_checked(
    endpoint: Endpoint, path: tuple[str | int, ...], make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=ACME)
    mine = example(endpoint.model, MINE)
    for other in OTHERS:
        answer = await client.post(f"/checkpoints/{endpoint.name}", json=replaced(mine, path, other))
        assert answer.status_code == 403, other
        assert answer.json()["detail"].startswith("this names a thread that is not of the tenant")
        # It says what the tenant's own begin with, and does not repeat what was asked.
        assert "thread_prefix='acme/'" in answer.json()["detail"]
        assert other not in answer.text.replace("'acme/'", "")
    assert script.asked == []


def test_there_are_fields_that_name_threads_in_all_endpoints_of_threads_but_one() -> None:
    named = {endpoint.name for endpoint, _ in FIELDS}
    assert BY_NAME.keys() - named == {"threads"}


OWNERS = [
    (endpoint, path)
    for endpoint in ENDPOINTS
    for path in paths_of_texts(example(endpoint.model))
    if path[-1] == "owner"
]


@pytest.mark.parametrize(("endpoint", "path"), OWNERS, ids=[each.name for each, _ in OWNERS])
async def test_every_field_that_names_an_owner_is_checked(
    endpoint: Endpoint, path: tuple[str | int, ...], make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=ACME)
    for other in (*OTHERS, "ada"):
        answer = await client.post(
            f"/checkpoints/{endpoint.name}", json=replaced(example(endpoint.model, MINE), path, other)
        )
        assert answer.status_code == 403, other
        assert answer.json()["detail"].startswith("this names an owner that is not of the tenant")
        assert "thread_prefix='acme/'" in answer.json()["detail"]
    assert script.asked == []


def test_there_are_fields_that_name_owners_where_threads_are_created_and_listed() -> None:
    assert {endpoint.name for endpoint, _ in OWNERS} == {"put", "set-thread", "threads"}


@pytest.mark.parametrize(
    ("principal", "status"),
    [
        (Principal("one"), 403),
        (Principal("one", rights=frozenset({"administer"})), 403),
        (Principal("one", rights=RIGHTS), 200),
        (ACME, 403),
    ],
)
async def test_the_list_of_all_threads_is_for_administrators_of_all(
    principal: Principal, status: int, make_client: MakeClient, script: Script
) -> None:
    answer = await make_client(principal=principal).post("/checkpoints/threads", json={})
    assert (answer.status_code, len(script.asked)) == (status, int(status == 200))


async def test_an_owner_is_bound_to_threads_by_name_only(make_client: MakeClient, script: Script) -> None:
    client = make_client(principal=Principal("one", "acme", RIGHTS, "ada"))
    requests: list[tuple[str, Any]] = [
        ("list", {"filter": {"run_id": "r"}}),
        ("delete-for-runs", {"run_ids": ["r"]}),
    ]
    for name, request in requests:
        answer = await client.post(f"/checkpoints/{name}", json=request)
        assert answer.status_code == 403
        assert "for one tenant or owner" in answer.json()["detail"]
    assert script.asked == []


@pytest.mark.parametrize(
    ("principal", "owner"),
    [
        (Principal("one"), None),
        (ACME, None),
        (Principal("one", owner="ada"), "ada"),
        (Principal("one", "acme", owner="ada"), "acme/ada"),
    ],
)
async def test_the_description_names_the_owner_that_credentials_are_bound_to(
    principal: Principal, owner: str | None, make_client: MakeClient
) -> None:
    assert (await make_client(principal=principal).get("/about")).json()["owner"] == owner


@pytest.mark.parametrize("owner", ["", "x\ud800", "a" * 3000])
def test_what_is_no_owner_binds_nobody(owner: str) -> None:
    with pytest.raises(CheckpointerInputError):
        Principal("one", "acme", owner=owner)


def test_an_owner_of_no_tenant_cannot_name_one() -> None:
    with pytest.raises(CheckpointerInputError, match="owner has a slash"):
        Principal("one", owner="acme/ada")
    assert Principal("one", "acme", owner="other/ada").owner_name == "acme/other/ada"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
async def test_what_is_theirs_they_may_name(
    endpoint: Endpoint, make_client: MakeClient, script: Script
) -> None:
    answer = await make_client(principal=ACME).post(
        f"/checkpoints/{endpoint.name}", json=example(endpoint.model, MINE)
    )
    assert (answer.status_code, len(script.asked)) == (200, 1)


async def test_runs_may_have_stored_in_threads_of_others(make_client: MakeClient, script: Script) -> None:
    answer = await make_client(principal=ACME).post("/checkpoints/delete-for-runs", json={"run_ids": ["r"]})
    assert (answer.status_code, script.asked) == (403, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
@pytest.mark.parametrize("right", sorted(RIGHTS))
async def test_a_right_is_for_its_endpoints_only(
    endpoint: Endpoint, right: Any, make_client: MakeClient, script: Script
) -> None:
    client = make_client(principal=Principal("one", rights=frozenset({right})))
    answer = await client.post(f"/checkpoints/{endpoint.name}", json=example(endpoint.model))
    if right == endpoint.right:
        assert answer.status_code == 200
    else:
        assert answer.status_code == 403
        assert f"needs the right to {endpoint.right}" in answer.json()["detail"]
        assert script.asked == []


@pytest.mark.parametrize(
    ("tenant", "rights", "request_", "status"),
    [
        (None, "read", {}, 403),
        (None, "read administer", {}, 200),
        (None, "administer", {}, 403),
        (None, "read", {"filter": {"run_id": "r"}}, 200),
        (None, "read", {"filter": {"run_id": 7}}, 403),
        (None, "read", {"filter": {"run_id": None}}, 403),
        (None, "read", {"filter": {"step": 1}}, 403),
        # The index has no such key, so these are scans, too.
        (None, "read", {"filter": {"run_id": ""}}, 403),
        (None, "read", {"filter": {"run_id": "r" * 2049}}, 403),
        ("acme", "read administer", {"filter": {"run_id": "é" * 1025}}, 403),
        (None, "read administer", {"filter": {"run_id": ""}}, 200),
        ("acme", "read administer", {}, 403),
        ("acme", "read administer", {"filter": {"step": 1}}, 403),
        ("acme", "read", {"filter": {"run_id": "r"}}, 200),
        ("acme", "read", {"filter": {"run_id": ["r"]}}, 403),
    ],
)
async def test_all_threads_are_listed_for_administrators_of_all_and_runs_for_everybody(
    tenant: str | None, rights: str, request_: Any, status: int, make_client: MakeClient, script: Script
) -> None:
    named: Any = frozenset(rights.split())
    client = make_client(principal=Principal("one", tenant, named))
    assert (await client.post("/checkpoints/list", json=request_)).status_code == status
    assert len(script.asked) == (status == 200)


async def test_metrics_are_for_administrators_of_all(make_client: MakeClient) -> None:
    for principal, status in (
        (ACME, 403),
        (Principal("agents"), 403),
        (Principal("ada", rights=RIGHTS, owner="ada"), 403),
        (Principal("operators", rights=frozenset({"administer"})), 200),
    ):
        assert (await make_client(principal=principal).get("/metrics")).status_code == status
