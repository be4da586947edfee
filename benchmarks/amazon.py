"""The peer whose dependencies collide with those of the others, measured in an environment made for the command.

The same code runs there, in a process that prints what it measured: `python -m benchmarks.amazon ENDPOINT WORKLOAD`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contestants import AMAZON
from benchmarks.prebuilt import PREBUILT
from benchmarks.runs import Run, run_workload
from benchmarks.workloads import ALL
from tools.engine import DYNAMODB_LOCAL, Engine

if TYPE_CHECKING:
    from benchmarks.workloads import Workload

_WORKLOADS = {**ALL, **{workload.name: workload for workload in PREBUILT}}
_ROOT = Path(__file__).parents[1]
_PYTHON = (
    *(str(_ROOT / ".venv" / "bin" / "uv"), "run", "--quiet", "--no-project", "--isolated"),
    *(
        "--python",
        sys.executable,
        "--with-requirements",
        "constraints/bench-amazon.txt",
        "--with-editable",
        ".",
    ),
    "python",
)


def run_amazon(engine: Engine, workload: Workload) -> Run:
    """Run a workload with the peer, in the other environment."""
    command = (*_PYTHON, "-m", "benchmarks.amazon", engine.endpoint_url, workload.name)
    environment = engine.environment() | {"UV_BUILD_CONSTRAINT": "constraints/aioboto3.txt"}
    process = subprocess.run(  # noqa: S603  # Our own module.
        command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return Run.from_json(json.loads(process.stdout))


def main(endpoint_url: str, workload: str) -> None:
    """Run a workload on an engine and print the run."""
    engine = Engine(DYNAMODB_LOCAL, DYNAMODB_LOCAL, endpoint_url)
    print(json.dumps(run_workload(AMAZON, engine, _WORKLOADS[workload]).as_json()))


if __name__ == "__main__":
    main(*sys.argv[1:])
