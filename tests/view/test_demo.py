"""What `make demo` leaves to look at: the page of its thread."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from langgraph.store.memory import InMemoryStore

from examples import demo, demo_agent

if TYPE_CHECKING:
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
    page = tmp_path / "pages" / "demo.html"
    demo.leave_a_page(stage, page)
    assert page.as_uri() in capsys.readouterr().out
    [data] = re.findall(
        r'<script type="application/json" id="export">(.*?)</script>', page.read_text(), re.DOTALL
    )
    export = json.loads(data)
    rows = export["documents"]["api/tree?thread=lisbon&ns="]["rows"]
    assert [row["source"] for row in rows].count("update") == 1
    assert demo_agent.SECOND_THOUGHT in json.dumps(export)
