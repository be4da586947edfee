"""All benchmarks: `make bench` counts units, requests and ratios; `make bench-backends` takes times.

Prints each section's tables, and then every bound. The exit status is 1 if one is broken or a section failed; the
others are run nevertheless.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.report import Bound, Section, table, written
from tools.engine import DYNAMODB_LOCAL, find

if TYPE_CHECKING:
    from collections.abc import Sequence

# Modules of this package, which are imported when it is their turn. Each has `run(engine)`.
SECTIONS = {
    "cost": "make bench",
    "growth": "make bench",
    "edits": "make bench",
    "upkeep": "make bench",
    "memories": "make bench",
    "cpu": "make bench",
    "gateway": "make bench",
    "backends": "make bench-backends",
    "overhead": "make bench-backends",
}
DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str]) -> int:
    """Run the sections that were asked for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="+", choices=SECTIONS, metavar="NAME", help="which")
    parser.add_argument("--write", action="store_true", help="put the tables and charts into the documents")
    options = parser.parse_args(arguments)
    # It reports the failures that large states are known to cause, which the tables show.
    logging.getLogger("langgraph_checkpoint_aws").setLevel(logging.CRITICAL)
    bounds = list[Bound]()
    for name in options.sections:
        section = _run(name)
        bounds += section.bounds
        if options.write:
            _write(section, SECTIONS[name])
    print(table(["bound", "", "measured", ""], [each.row for each in bounds]))
    return 0 if all(each.holds for each in bounds) else 1


def _run(name: str) -> Section:
    """Run one section on a fresh engine and print its tables, or why there are none."""
    started = time.monotonic()
    try:
        # Savers that are made as users make them find their credentials there.
        with find(DYNAMODB_LOCAL).run() as engine, patch.dict(os.environ, engine.environment()):
            section: Section = import_module(f"benchmarks.{name}").run(engine)
    except Exception:  # noqa: BLE001  # What the other sections have measured is not to be lost.
        traceback.print_exc()
        section = Section({}, [Bound(f"failures of {name}", 1, most=0)])
    print(*section.tables.values(), sep="\n")
    print(f"({name} took {time.monotonic() - started:.0f} seconds)\n", flush=True)
    return section


def _write(section: Section, command: str) -> None:
    for page in DOCS.glob("*.md"):
        old = text = page.read_text(encoding="utf-8")
        for name, made in section.tables.items():
            if f"<!-- measured: {name} -->" in text:
                text = written(text, name, made, command)
        if text != old:
            page.write_text(text, encoding="utf-8")
    for name, svg in section.charts.items():
        (DOCS / "figures" / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
