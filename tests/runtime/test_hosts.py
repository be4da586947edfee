"""Every call and the examples under whatever an agent runs under, with the saver that uses DynamoDB itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.hosts import HOSTS, played

if TYPE_CHECKING:
    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.mark.search
@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_runs_under(engine: Engine, table_name: str, tmp_path: Path, host: str) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(f"checkpointer: {{type: dynamodb, config: {{table_name: {table_name}}}}}")
    environment = {**engine.environment(), "TABLE_NAME": table_name}
    lines, errors = played(host, file, table_name, environment)
    assert (lines[-1:], errors) == (["played"], "")
