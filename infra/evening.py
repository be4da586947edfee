"""One evening in an account of AWS: `python -m infra.evening STACK`, or `make evening BUCKET=...`.

What no emulator shows is tried there once, in its order, and written into a report: preflight, table, smoke, gateway,
200 agents at once, a restore. The stacks have a name of their own, and stay for whoever wants to look.

Owns: the steps and the report. Must not know: how a step does its work, which `make` has.
"""

import argparse
import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from infra.checks import OK, PROBLEM, Checks, LeftOutError, Result, described_stack, expect, outputs, report
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.version import __version__

AGENTS = 200
# All agents are there in less, or one of them could not begin.
_PATIENCE_SECONDS = 60


@dataclass
class Evening:
    """One run.

    Attributes:
        stack: The name of the table's stack, and of the table.
        make: The command for make, which hands its own variables on.
        gateway_url: The gateway's address; None for the one that its stack puts out.
        token: The token of the gateway's only principal.
        printed: By step, what its command printed.
        failed: The steps that failed, on which later ones depend.
    """

    stack: str
    make: str = "make"
    gateway_url: str | None = None
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    printed: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def run(self, target: str, *variables: str) -> str:
        """Run a target of make; return the last line that it prints."""
        command = [*self.make.split(), "--no-print-directory", target, f"STACK={self.stack}", *variables]
        done = subprocess.run(  # noqa: S603  # Our own Makefile.
            command,
            env={**os.environ, "GATEWAY_TOKEN": self.token},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.printed[f"{target} {' '.join(variables)}".strip()] = done.stdout
        # What make says of itself is not why something failed.
        lines = [each for each in done.stdout.splitlines() if each.strip() and not each.startswith("make")]
        lines = lines or ["nothing was printed"]
        expect(done.returncode == 0, f"make {target} ended with {done.returncode}: {lines[-1]}")
        return lines[-1]

    def needs(self, *steps: str) -> None:
        """Leave a step out if one that it needs failed."""
        missing = [each for each in steps if each in self.failed]
        if missing:
            raise LeftOutError(f"{', '.join(missing)} failed")


STEPS: Checks[Evening] = Checks()
_SEE = "read what it printed, in the report; run the command again by itself"


@STEPS.add(_SEE)
def preflight(evening: Evening) -> str:
    """What the account lacks is known before anything is made."""
    return evening.run("preflight", f"PARAMETERS=TableName={evening.stack}")


@STEPS.add(_SEE)
def deploy(evening: Evening) -> str:
    """Table, policies, alarms and dashboard are there."""
    return evening.run("deploy", f"PARAMETERS=TableName={evening.stack}")


@STEPS.add(_SEE)
def smoke(evening: Evening) -> str:
    """Each part of the deployment works, under the role that it is for."""
    evening.needs("deploy")
    return evening.run("smoke")


@STEPS.add("pass BUCKET=..., a bucket of this region; " + _SEE)
def deploy_gateway(evening: Evening) -> str:
    """The gateway is there, for one principal."""
    evening.needs("deploy")
    digest = hashlib.sha256(evening.token.encode()).hexdigest()
    principal = {"sha256": [digest], "rights": ["read", "write", "administer"]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as principals:
        principals.write(json.dumps({"bearer": {"evening": principal}}))
        principals.flush()
        return evening.run("deploy-gateway", f"PRINCIPALS={principals.name}")


@STEPS.add("raise ReservedConcurrency; compare the alarms FunctionThrottles and FailedRequests")
def agents(evening: Evening) -> str:
    """As many agents at once as no reservation has room for, each with a connection of its own, come to their end."""
    evening.needs("deploy", "deploy-gateway")
    url = evening.gateway_url or outputs(described_stack(f"{evening.stack}-gateway"))["Url"]
    name, barrier = f"evening/{secrets.token_hex(4)}", threading.Barrier(AGENTS, timeout=_PATIENCE_SECONDS)

    def run(number: int) -> tuple[str, float]:
        config: Any = {"configurable": {"thread_id": f"{name}/{number}"}}
        with HttpCheckpointSaver(url, auth=evening.token) as saver:
            began = time.monotonic()
            try:
                barrier.wait()
                began = time.monotonic()
                _one_step().compile(checkpointer=saver).invoke({"steps": 0}, config)
                saver.delete_thread(config["configurable"]["thread_id"])
            except Exception as error:  # noqa: BLE001 - each way to fail is counted.
                return f"{type(error).__name__}: {error}"[:200], time.monotonic() - began
        return OK, time.monotonic() - began

    with ThreadPoolExecutor(AGENTS) as pool:
        found = list(pool.map(run, range(AGENTS)))
    slowest = max(seconds for _, seconds in found)
    counts = Counter(outcome for outcome, _ in found)
    evening.printed["agents"] = "\n".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    says = f"{counts[OK]} of {AGENTS} agents came to their end, the slowest after {slowest:.1f} s"
    expect(counts[OK] == AGENTS, says)
    return says


class _State(TypedDict):
    steps: int


def _one_step() -> StateGraph[_State, None, _State, _State]:
    """Return an agent that takes one step."""
    graph = StateGraph(_State)
    graph.add_node("step", lambda state: {"steps": state["steps"] + 1})
    graph.add_edge(START, "step")
    graph.add_edge("step", END)
    return graph


@STEPS.add(_SEE)
def restore(evening: Evening) -> str:
    """A thread is in a copy of the table that was restored to a point in time."""
    evening.needs("deploy")
    says = evening.run("smoke", "SMOKE=--only restored")
    left_out = re.search(
        r"^left out.* restored: (.*)$", evening.printed["smoke SMOKE=--only restored"], re.MULTILINE
    )
    if left_out is not None:
        raise LeftOutError(left_out[1])
    return says


def taken(evening: Evening) -> Iterator[Result]:
    """Take each step, whatever became of those before that it does not need."""
    for each in STEPS.values():
        result = each.made(evening)
        if result.verdict == PROBLEM:
            evening.failed.append(result.check)
        yield result


def written(evening: Evening, results: list[Result]) -> str:
    """Return the report."""
    lines = [
        "# An evening on AWS",
        "",
        f"langgraph-dynamodb {__version__}, the stack {evening.stack}, {datetime.now(timezone.utc):%Y-%m-%d %H:%M}.",
        "",
        "| step | outcome | seconds | |",
        "|---|---|---:|---|",
        *(f"| {each.check} | {each.verdict} | {each.seconds:.0f} | {each.says} |" for each in results),
        "",
    ]
    for name, text in evening.printed.items():
        lines += [f"## {name}", "", "```text", text.replace(evening.token, "<token>").strip(), "```", ""]
    return "\n".join(lines)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.evening",
        description=__doc__.split("\n", 1)[0],
        epilog=STEPS.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="the name of the table's stack, which no agent uses")
    parser.add_argument("--make", default="make", help="the command for make")
    parser.add_argument("--gateway", metavar="URL", help="a gateway's address, if no stack puts it out")
    parser.add_argument("--report", type=Path, default=Path("build/evening.md"), help="the file to write")
    options = parser.parse_args()
    evening, results = Evening(options.stack, options.make, options.gateway), list[Result]()

    def noted() -> Iterator[Result]:
        # What was found is in the report, even where somebody interrupts a restore of an hour.
        for each in taken(evening):
            results.append(each)
            options.report.parent.mkdir(parents=True, exist_ok=True)
            options.report.write_text(written(evening, results), encoding="utf-8")
            yield each

    status = report(noted())
    sys.stdout.write(f'The report is {options.report}. To remove all: docs/deploy.md, "An evening on AWS"\n')
    return status


if __name__ == "__main__":
    sys.exit(main())
