"""The same configuration from everything that it may be read from, and what is said of what cannot be read."""

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfig, CheckpointerConfigurationError

PREFIX = "LANGGRAPH_CHECKPOINTER_"
SAME: dict[str, Any] = {
    "type": "dynamodb",
    "config": {"table_name": "threads", "ttl_seconds": 60, "serde": {"pickle_fallback": True}},
}
EXPECTED = CheckpointerConfig(**SAME)


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _error(source: Any) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught:
        CheckpointerConfig.load(source)
    return str(caught.value)


@pytest.mark.parametrize("ending", ["yaml", "yml", "YAML"])
def test_a_yaml_file_may_have_anything_else(tmp_path: Path, ending: str) -> None:
    text = """
        name: agent
        state_type: !python/object:somebody.Else {a: "${NOT_OURS}"}
        defaults: &defaults {ttl_seconds: 60, table_name: other}
        checkpointer:
          type: dynamodb
          config:
            <<: *defaults
            table_name: threads
            serde: {pickle_fallback: true}
        """
    assert CheckpointerConfig.load(_file(tmp_path, f"agent.{ending}", text)) == EXPECTED
    assert CheckpointerConfig.load(str(tmp_path / f"agent.{ending}")) == EXPECTED


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "TYPE": "dynamodb",
        "CONFIG__TABLE_NAME": "${A_NAME}s",
        "CONFIG__TTL_SECONDS": "60",
        "CONFIG__SERDE__PICKLE_FALLBACK": "true",
    }.items():
        monkeypatch.setenv(PREFIX + name, text)
    monkeypatch.setenv("A_NAME", "thread")
    # LangGraph's Agent Server has variables of such names as well.
    monkeypatch.setenv(PREFIX + "POSTGRES_POOL_MIN_SIZE", "3")
    assert CheckpointerConfig.load() == EXPECTED


def test_a_dict_is_a_section_or_a_file() -> None:
    assert CheckpointerConfig.load(SAME) == EXPECTED
    assert CheckpointerConfig.load({"name": "agent", "checkpointer": SAME}) == EXPECTED
    assert CheckpointerConfig.model_validate(SAME) == EXPECTED
    assert CheckpointerConfig.load(EXPECTED) is EXPECTED
    assert CheckpointerConfig.model_validate(EXPECTED) is EXPECTED


def test_a_section_of_a_dict_is_recognized_though_it_is_misspelled() -> None:
    assert "did you mean it by `checkpointers:`?" in _error({"checkpointers": SAME, "name": "agent"})


def test_a_configuration_is_a_value() -> None:
    other = CheckpointerConfig(type="sqlite", config={"db_file": "x"})
    assert other != EXPECTED
    assert copy.deepcopy(EXPECTED) == EXPECTED
    assert pickle.loads(pickle.dumps(EXPECTED)) == EXPECTED  # noqa: S301  # Our own.
    assert CheckpointerConfig() == CheckpointerConfig(type="memory", config=None)


# What cannot be read


@pytest.mark.parametrize("second", ["CONFIG__TABLE_NAME", "config", "type"])
@pytest.mark.skipif(os.name == "nt", reason="variables of Windows have no case")
def test_variables_that_contradict_each_other(second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "TYPE", second):
        monkeypatch.setenv(PREFIX + name, name)
    assert _error(None).startswith(f"environment variable {PREFIX}{second.upper()}: is set, and so is")


def test_files_that_are_not_there_or_not_readable(tmp_path: Path) -> None:
    assert _error(tmp_path / "no.yaml") == f"{tmp_path}/no.yaml: there is no such file"
    assert "ends in .yaml or .yml" in _error(tmp_path / "agent.ini")
    (tmp_path / "folder.yaml").mkdir()
    assert _error(tmp_path / "folder.yaml") == f"{tmp_path}/folder.yaml: Is a directory"
    (tmp_path / "latin.yaml").write_bytes("checkpointer: ä".encode("latin-1"))
    assert _error(tmp_path / "latin.yaml") == f"{tmp_path}/latin.yaml: a configuration is text in UTF-8"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": there is no `checkpointer:` in it; say which type"),
        ("- checkpointer", ": there is no `checkpointer:` in it; say which type"),
        ("checkpointers: {}", ": there is no `checkpointer:` in it; did you mean it by `checkpointers:`"),
        ("checkpointer:\n\ttype: memory", ", line 2: this is not YAML: it has a tab; use spaces"),
        ("name: agent", ": there is no `checkpointer:` in it; say which type"),
        ("a: 1\ncheckpointer: {type: memory", ", line 2: this is not YAML: expected ',' or '}', but got"),
        ("a: 1\nb: c: hunter2", ", line 2: this is not YAML: mapping values are not allowed here"),
        ("checkpointer:\n  type: *hunter2", ", line 2: this is not YAML: found undefined alias '...'"),
        ("checkpointer:\n  type: !hunter2 x", ", line 2: this is not YAML: could not determine a constr"),
        ("a: 1\nb: {c: ${A}}", ", line 2: this is not YAML: expected ',' or '}', but got '{'; put values"),
        ("a: \x00", ": this is not YAML: it has a character that YAML does not allow"),
        ("checkpointer: {config: 2020-13-13}", ": a date or number under `checkpointer:` is not valid"),
        ("checkpointer: {}\nname: x\ncheckpointer: {}", ", line 3: `checkpointer:` is there twice"),
        ("checkpointer:\n  type: memory\n  type: sqlite", ", line 3: this is not YAML: a key is there twice"),
        ("checkpointer: " + "[" * 10_000, ": lists or mappings in it are nested too deeply"),
        ("checkpointer: memory", ", checkpointer: must be a mapping of names to values"),
        ("checkpointer:\n", ", checkpointer: must be a mapping of names to values"),
    ],
)
def test_yaml_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    error = _error(_file(tmp_path, "agent.yaml", text))
    assert error.startswith(f"{tmp_path}/agent.yaml{says}")
    assert "hunter2" not in error


# Where it stands


def test_every_mistake_in_a_file_is_named_by_its_key(tmp_path: Path) -> None:
    text = """# A comment.
other: &other
  cache_bytes: x
checkpointer:

  type: dynamodb
  config:
    <<: *other
    serde:
      allowed_msgpack_modules:
        - a:B
        - 3
    ttl_seconds: 0
"""
    error = _error(_file(tmp_path, "agent.yaml", text)).replace(f"{tmp_path}/", "")
    assert [line.split(": ")[0] for line in error.splitlines()[1:]] == [
        "  agent.yaml, checkpointer.config.table_name",
        "  agent.yaml, checkpointer.config.serde.allowed_msgpack_modules.1",
        "  agent.yaml, checkpointer.config.ttl_seconds",
        "  agent.yaml, checkpointer.config.cache_bytes",
    ]


def test_a_variable_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "TIPE", "memory")
    monkeypatch.setenv(PREFIX + "CONFIG__SERDE__PICKLE_FALLBACK", "perhaps")
    monkeypatch.setenv(PREFIX + "TYPE", "dynamodb")
    assert [line.split(": ")[0] for line in _error(None).splitlines()[1:]] == [
        f"  environment variable {PREFIX}TIPE",
        f"  environment variable {PREFIX}CONFIG__TABLE_NAME",
        f"  environment variable {PREFIX}CONFIG__SERDE__PICKLE_FALLBACK",
    ]
