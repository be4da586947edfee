"""What a fresh process pays before its first checkpoint is stored, as a function that was just started does.

Each measurement is a process of its own. Half of them use boto3 alone: they import it beside LangGraph's own
interface of savers, make a client, and put an item; the others use the saver. All find their modules compiled, as
pip leaves them; what compiling them costs is counted apart, for packages that hold sources only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import OURS
from benchmarks.figures import Figure, Section, at_most
from benchmarks.raw import new_table
from benchmarks.report import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.engine import Engine

_PROCESSES = 12
_IMPORT_MS_MAX = 40
# None of these is needed without async; pydantic counts only where LangGraph's own interface has not imported it.
_UNWANTED = ("aiohttp", "aiobotocore", "aioboto3", "moto", "pydantic")

_PROGRAM = """
import json, sys, time
started = time.perf_counter()
import boto3, langgraph.checkpoint.base
imported = time.perf_counter()
before = set(sys.modules)
if {ours}:
    from langgraph.checkpoint.dynamodb import DynamoDBSaver
ready = time.perf_counter()
added = sorted(set(sys.modules) - before)
if {ours}:
    saver = DynamoDBSaver(sys.argv[1])
    checkpoint = langgraph.checkpoint.base.empty_checkpoint()
    config = {{"configurable": {{"thread_id": "cold", "checkpoint_ns": ""}}}}
    saver.put(config, checkpoint, {{"source": "loop", "step": 0, "parents": {{}}}}, {{}})
else:
    client = boto3.client("dynamodb")
    client.put_item(TableName=sys.argv[1], Item={{"PK": {{"S": "cold"}}, "SK": {{"S": "item"}}}})
done = time.perf_counter()
print(json.dumps({{
    "import boto3, langgraph.checkpoint.base": imported - started,
    "import the saver": ready - imported,
    "client and first put": done - ready,
    "all": done - started,
    "added": added,
    "modules": sorted(sys.modules),
}}))
"""
_PARTS = ("import boto3, langgraph.checkpoint.base", "import the saver", "client and first put", "all")


def run(engine: Engine) -> Section:
    """Start processes in turn, with boto3 alone and with the saver."""
    with new_table(engine, OURS) as table_name, tempfile.TemporaryDirectory() as compiled:
        # The first of each kind compiles what it imports.
        first = {ours: _start(engine, table_name, compiled, ours=ours) for ours in (False, True)}
        results: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for _ in range(_PROCESSES):
            for ours, kept in results.items():
                kept.append(_start(engine, table_name, compiled, ours=ours))
    raw, saver = ({part: _median_ms(kept, part) for part in _PARTS} for kept in results.values())
    rows = [
        (part, f"{raw[part]:.0f}", f"{saver[part]:.0f}", f"{saver[part] - raw[part]:.0f}") for part in _PARTS
    ]
    added = results[True][0]["added"]
    more = _packages(results[True][0]["modules"]) - _packages(results[False][0]["modules"])
    unwanted = [name for name in _UNWANTED if name in more]
    own = [name for name in added if name.startswith("langgraph.checkpoint.dynamodb")]
    others = [name for name in added if name not in own]
    measured = saver["import the saver"] - raw["import the saver"]
    return Section(
        "Cold start in milliseconds, medians of fresh processes",
        (
            table(("", "boto3", OURS.name, "more"), rows),
            f"The import adds {len(own)} modules of its own, and: {', '.join(others) or 'nothing else'}",
            "The first process of each kind, which had to compile its modules:"
            f" {first[False][_PARTS[0]] * 1000:.0f} ms for {_PARTS[0].removeprefix('import ')},"
            f" {first[True][_PARTS[1]] * 1000:.0f} ms for the saver",
        ),
        (
            Figure(
                "import of the saver, over boto3 and langgraph.checkpoint.base",
                f"at most {_IMPORT_MS_MAX} ms",
                f"{measured:.1f} ms",
                measured <= _IMPORT_MS_MAX,
                f"a difference between two medians of {_PROCESSES} processes; {len(own)} modules of our own and"
                f" {len(others)} others are imported",
            ),
            at_most(f"of {', '.join(_UNWANTED)} on the blocking path", 0, len(unwanted)),
        ),
        {"boto3_ms": raw, "saver_ms": saver, "import_adds": added, "unwanted": unwanted},
    )


def _start(engine: Engine, table_name: str, compiled: str, *, ours: bool) -> dict[str, Any]:
    command = (sys.executable, "-c", _PROGRAM.format(ours=ours), table_name)
    environment = {**engine.environment(), "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    output = subprocess.run(  # noqa: S603 - our own program.
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def _median_ms(results: Sequence[dict[str, Any]], part: str) -> float:
    seconds: list[float] = [result[part] for result in results]
    return median(seconds) * 1000


def _packages(modules: Sequence[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}
