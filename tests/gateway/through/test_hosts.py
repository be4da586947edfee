"""Every call and the examples under whatever an agent runs under, with either saver."""

from pathlib import Path

import pytest

from tests.gateway.through.conftest import Serve
from tests.support.hosts import HOSTS, played
from tools.engine import Engine

pytestmark = [pytest.mark.engines("dynamodb-local"), pytest.mark.search]


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_runs_under(
    engine: Engine, table_name: str, serve: Serve, tmp_path: Path, host: str
) -> None:
    address = serve()
    itself, through_a_gateway = tmp_path / "itself.yaml", tmp_path / "through.yaml"
    itself.write_text(f"checkpointer: {{type: dynamodb, config: {{table_name: {table_name}}}}}")
    through_a_gateway.write_text(f"checkpointer: {{type: http, config: {{url: {address}}}}}")
    environment = {**engine.environment(), "TABLE_NAME": table_name}
    lines, errors = played(host, {itself: table_name, through_a_gateway: address}, environment)
    assert (lines[-1:], errors) == (["played"], "")
