"""All benchmarks, one after the other: `make bench`.

Prints each section's tables, then one table of all figures that the project set out to reach. The exit status
is 1 if one of them was not reached and nothing says what stands in the way, or if a section failed; the others are
run nevertheless.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.figures import Figure, Section
from benchmarks.report import table
from tools.engine import DYNAMODB_LOCAL, find
from tools.server import ServerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Modules of this package; each has `run(engine)`. They are imported when it is their turn. A page cites each of them.
SECTIONS = (
    "cost",
    "reads",
    "price",
    "agents",
    "growth",
    "edits",
    "overhead",
    "cpu",
    "loops",
    "directory",
    "tenants",
    "memories",
    "flush",
    "gateway",
)


def main(arguments: Sequence[str]) -> int:
    """Run the sections that were asked for and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="NAME", help="which")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write everything that was measured here"
    )
    parser.add_argument("--charts", type=Path, metavar="DIR", help="also write the charts here")
    options = parser.parse_args(arguments)
    # It reports the failures that large states are known to cause, which the tables show.
    logging.getLogger("langgraph_checkpoint_aws").setLevel(logging.CRITICAL)
    try:
        find(DYNAMODB_LOCAL)
    except ServerUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    sections = {name: _run(name) for name in options.only}
    if options.json:
        _write_json(options.json, sections)
    if options.charts:
        _write_charts(options.charts, sections)
    return _conclude(sections)


def _run(name: str) -> Section:
    """Run one section on a fresh engine and print its tables, or why there are none."""
    started = time.monotonic()
    try:
        # Savers that are made as users make them find their credentials there.
        with find(DYNAMODB_LOCAL).run() as engine, patch.dict(os.environ, engine.environment()):
            section: Section = import_module(f"benchmarks.{name}").run(engine)
    except Exception as error:  # noqa: BLE001  # What the other sections have measured is not to be lost.
        section = _failed(name, error)
    took = f"({name} took {time.monotonic() - started:.0f} seconds)"
    print(section.title, *section.tables, took, sep="\n\n", end="\n\n\n", flush=True)
    return section


def _failed(name: str, error: Exception) -> Section:
    """Return what is reported instead of a section that raised; its figure has no remark, as nothing excuses it."""
    trace = "".join(traceback.format_exception(error)).rstrip()
    what = f"{type(error).__name__}: {error}"
    return Section(
        f"{name}: FAILED",
        [trace],
        [Figure(f"section {name}", "runs", "failed", reached=False)],
        {"error": what},
    )


def _conclude(sections: Mapping[str, Section]) -> int:
    """Print all figures, and under them why some were not reached."""
    figures = [figure for section in sections.values() for figure in section.figures]
    rows = [(each.name, each.target, each.measured, each.verdict) for each in figures]
    print(table(["figure", "to reach", "measured", ""], rows))
    missed = [each for each in figures if not each.reached]
    remarks = [f"{each.name}: {each.remark}" for each in missed if each.remark]
    if remarks:
        print("\nWhat stands in the way:", *remarks, sep="\n")
    return 0 if all(each.remark for each in missed) else 1


def _write_json(file: Path, sections: Mapping[str, Section]) -> None:
    data = {
        name: {"measured": section.data, "figures": [asdict(each) for each in section.figures]}
        for name, section in sections.items()
    }
    file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _write_charts(folder: Path, sections: Mapping[str, Section]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections.values():
        for name, svg in section.charts.items():
            (folder / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
