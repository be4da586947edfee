"""LangGraph's own tests of graphs, on this saver: those of its source distribution that take a checkpointer.

`python -m tools.langgraph_suite table` or `gateway` runs them, with an engine in the environment, as `make
langgraph-suite` does. What follows is for pytest. pytest loads this module as a plugin, which puts a saver into the
place of LangGraph's own in memory.
"""

import contextlib
import importlib.metadata
import os
import random
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tools.server import Server

ROOT = Path(__file__).parents[1]
URL_VARIABLE = "LANGGRAPH_SUITE_GATEWAY"
FIXTURES = {"sync_checkpointer", "async_checkpointer"}
# Tests that may fail, and why that is no fault of a saver.
_TIMES = "it waits for hundredths of a second, and requests take some on a busy machine"
KNOWN = {
    "test_imp_nested": _TIMES,
    "test_root_graph": "it counts the UUIDs that this process makes, and requests have some, too",
    "test_stream_buffering_single_node": _TIMES,
    "test_stream_subgraphs_during_execution": _TIMES,
    "test_weather_subgraph": "it fails with LangGraph's savers, too, with a newer langchain-core than it expects",
}


@contextlib.contextmanager
def _saver() -> Iterator[Any]:
    """Give a saver that has no threads."""
    name = f"suite-{random.SystemRandom().getrandbits(60)}"
    url = os.environ.get(URL_VARIABLE)
    if url is not None:
        with HttpCheckpointSaver(url, thread_prefix=f"{name}/", serde=JsonPlusSerializer()) as saver:
            yield saver
        return
    with DynamoDBSaver(name) as saver:
        saver.setup()
        yield saver


def _is_chosen(item: pytest.Item) -> bool:
    """Tell whether a test takes a checkpointer: once, and not with each of LangGraph's own."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    return not FIXTURES.isdisjoint(given) and all(
        given[each] == "memory" for each in given.keys() & {*FIXTURES, "cache"}
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests, and replace the saver in memory."""
    chosen = [each for each in items if _is_chosen(each)]
    config.hook.pytest_deselected(items=[each for each in items if not _is_chosen(each)])
    for each in chosen:
        reason = KNOWN.get(each.originalname) if isinstance(each, pytest.Function) else None
        if reason is not None:
            each.add_marker(pytest.mark.xfail(reason=reason))
    items[:] = chosen
    vars(sys.modules["tests.conftest"])["_checkpointer_memory"] = _saver


def _source(folder: Path) -> Path:
    """Return where the source distribution of the installed LangGraph is; fetch it if it is not there."""
    version = importlib.metadata.version("langgraph")
    found = folder / f"langgraph-{version}"
    if not found.exists():
        command = ["pip", "download", "--quiet", "--no-deps", "--no-binary=langgraph", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", *command, f"langgraph=={version}"], check=True)  # noqa: S603
        with tarfile.open(f"{found}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the tests: `table` or `gateway`, and arguments of pytest."""
    way, *given = arguments
    environment = {"NO_DOCKER": "true", "PYTHONPATH": str(ROOT)}
    with contextlib.ExitStack() as stack:
        if way == "gateway":
            with DynamoDBSaver("langgraph-suite") as saver:
                saver.setup()
            program = "from langgraph.checkpoint.dynamodb.cli import main; main()"
            options = ("--table", "langgraph-suite", "--insecure", "--port", "{port}")
            command = (sys.executable, "-c", program, "gateway", *options)
            environment[URL_VARIABLE] = stack.enter_context(Server("the gateway", command).run())
        plugins = ("-p", __spec__.name, "-p", "no:langsmith_plugin", "-p", "no:cacheprovider")
        # Tests that are left out have snapshots, which are no failure.
        shown = ("-q", "--tb=short", "--snapshot-warn-unused")
        tests = ["-m", "pytest", *plugins, "-o", "addopts=", *shown, *given]
        return subprocess.run(  # noqa: S603  # LangGraph's tests.
            [sys.executable, *tests],
            cwd=_source(ROOT / "build"),
            env={**os.environ, **environment},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
