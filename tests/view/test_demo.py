"""What `make view-demo` shows: the page of its thread."""

from pathlib import Path

import boto3
import pytest
from langgraph.store.memory import InMemoryStore

from examples import demo, demo_agent
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.view.conftest import Asked
from tools.engine import Engine


@pytest.mark.engines("dynamodb-local")
def test_the_page_of_the_demos_thread_has_its_story(
    engine: Engine, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = boto3.Session(engine.access_key_id, engine.secret_access_key, None, engine.region_name)
    stage = demo.Stage(engine, session, table, tmp_path / "usage", {})
    with stage.saver() as saver:
        agent, config = demo_agent.build(saver, InMemoryStore()), demo_agent.config_of(demo.THREAD)
        demo_agent.recall(agent, demo_agent.config_of(f"{demo.OTHER_THREAD} before"))
        assert capsys.readouterr().out == "agent: I do not know.\n"
        for action in (demo_agent.start, demo_agent.answer, demo_agent.fork):
            action(agent, config)
        capsys.readouterr()
        demo_agent.recall(agent, demo_agent.config_of(demo.OTHER_THREAD))
        assert capsys.readouterr().out == f"agent: At the {demo_agent.HOTEL}.\n"
        rows = Asked(Responses(Session(saver))).rows(demo.THREAD)
    assert [row["source"] for row in rows].count("update") == 1
    assert any(task["answered"] for row in rows for task in row["tasks"])
