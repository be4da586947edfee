"""Every call and the examples under whatever an agent runs under, with the saver that asks the gateway."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.hosts import HOSTS, played

# The saver's own hosts are in tests/runtime/test_hosts.py.
pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.search]


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_runs_under(serve: Callable[..., str], tmp_path: Path, host: str) -> None:
    address = serve()
    file = tmp_path / "agent.yaml"
    file.write_text(f"checkpointer: {{type: http, config: {{url: {address}}}}}")
    lines, errors = played(host, file, address, os.environ)
    assert (lines[-1:], errors) == (["played"], "")
