"""docs/configuration.md is right: its files can be loaded, and what is not generated has every option."""

import json
import re
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb import CacheConfig, CheckpointerConfig, StoreConfig
from langgraph.checkpoint.dynamodb.config.fields import IndexOptions, TtlOptions
from langgraph.checkpoint.dynamodb.config.serde import EncryptionKey, SerdeOptions
from tests.support.documents import ROOT, blocks, read

DOCUMENT = read("docs/configuration.md")
FIRST = CheckpointerConfig(
    type="dynamodb",
    config={"table_name": "langgraph-checkpoints", "region_name": "eu-west-1", "ttl_seconds": 2592000},
)


def _named_in_table_of(heading: str) -> set[str]:
    section = f"\n{DOCUMENT}".split(f"\n{heading}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("text", blocks(DOCUMENT, "yaml"))
def test_every_yaml_file_can_be_loaded(text: str, tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(text.replace("my_agent.state:Ticket", "decimal:Decimal"))
    sections = [
        each for each in (CheckpointerConfig, StoreConfig, CacheConfig) if f"{each.subject.name}:" in text
    ]
    assert sections
    for each in sections:
        assert each.load(tmp_path / "agent.yaml").type in each.types


def test_the_same_from_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent.yaml").write_text(blocks(DOCUMENT, "yaml")[0])
    for line in blocks(DOCUMENT, "sh")[0].splitlines():
        monkeypatch.setenv(*line.split("="))
    for source in (tmp_path / "agent.yaml", None):
        assert CheckpointerConfig.load(source) == FIRST


def test_the_other_tables() -> None:
    assert _named_in_table_of("# Options and configuration") == set(CheckpointerConfig.model_fields)
    assert _named_in_table_of("## Encryption") | {"encoding"} == set(EncryptionKey.model_fields)
    for model in (SerdeOptions, IndexOptions, TtlOptions):
        assert not [name for name in model.model_fields if f"`{name}`" not in DOCUMENT]


def test_the_agent_server_is_configured_as_in_its_test() -> None:
    tested = ROOT / "tests" / "agent_server" / "langgraph.json"
    documented = json.loads(blocks(DOCUMENT, "json")[0])
    found = json.loads(tested.read_text(encoding="utf-8"))
    # The test has another graph as well.
    found["graphs"] = {name: found["graphs"][name] for name in documented["graphs"]}
    assert documented == found
