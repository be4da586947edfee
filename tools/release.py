"""Try what is about to be released, as those who install it will: `make release-check TAG=v0.1.0`.

Both distributions are built into dist/ and installed, each into an empty environment of the oldest Python and of the
newest that this machine has. There the command line starts and a saver is made. From the unpacked source distribution
the demo runs, and its own `make test`, which also runs README's programs. The tag has to be the version, and the
changelog has to have it with a date. build/sbom.cdx.json lists what an installation with all extras brings.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from langgraph.checkpoint.dynamodb import __version__
from tools.matrix import ROOT, UV, declared_versions, find_python

DISTRIBUTIONS = ROOT / "dist"
BUILD = ROOT / "build" / "release"
ENVIRONMENT = BUILD / "environment"
PYTHON = ENVIRONMENT / "bin" / "python"
SBOM = ROOT / "build" / "sbom.cdx.json"
SBOM_TOOL = "cyclonedx-bom==7.1.0"
MAKES_A_SAVER = 'from langgraph.checkpoint.dynamodb import DynamoDBSaver; DynamoDBSaver("table")'


def problems(tag: str, changelog: str) -> list[str]:
    """Return what keeps a tag from being released, in words."""
    found = []
    if tag != f"v{__version__}":
        found.append(f"the tag is {tag!r}, and the version {__version__}; give v{__version__}")
    if not re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no date for {__version__}; write ## [{__version__}] - YYYY-MM-DD")
    return found


def try_installed(distribution: Path, python: Path) -> None:
    """Install a distribution with all extras into an empty environment, and use it there."""
    _run(UV, "venv", "--quiet", "--clear", "--python", python, ENVIRONMENT)
    _run(UV, "pip", "install", "--quiet", "--python", PYTHON, f"{distribution}[all]")
    # From another folder, so that nothing of the repository is imported.
    _run(PYTHON.with_name("langgraph-dynamodb"), "threads", "--help", cwd=ENVIRONMENT, quiet=True)
    _run(PYTHON, "-c", MAKES_A_SAVER, cwd=ENVIRONMENT)


def try_source(distribution: Path, python: Path) -> None:
    """Run the demo and the tests of an unpacked source distribution."""
    with tarfile.open(distribution) as archive:
        archive.extractall(BUILD, filter="data")
    for target in ("demo", "test"):
        _run("make", f"PYTHON={python}", target, cwd=BUILD / distribution.name.removesuffix(".tar.gz"))


def _run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False) -> None:
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(command, check=True, cwd=cwd, stdout=output)  # noqa: S603 - our own programs.


def main(arguments: Sequence[str] | None = None) -> None:
    """Build and try both distributions; exit with an error that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("tag", help="the tag that is about to be pushed, such as v0.1.0")
    found = problems(parser.parse_args(arguments).tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found:
        sys.exit("; ".join(found))
    for folder in (DISTRIBUTIONS, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    _run(UV, "build", "--quiet", "--out-dir", DISTRIBUTIONS)
    (source,), (wheel,) = DISTRIBUTIONS.glob("*.tar.gz"), DISTRIBUTIONS.glob("*.whl")
    pythons = [each for each in map(find_python, declared_versions()) if each is not None]
    for python in (pythons[0], pythons[-1]):
        for distribution in (source, wheel):
            print(f"== {distribution.name} in {python}", flush=True)
            try_installed(distribution, python)
    made_by = shlex.split(f"tool run --quiet --from {SBOM_TOOL} cyclonedx-py environment")
    _run(UV, *made_by, PYTHON, "--output-file", SBOM)
    try_source(source, pythons[-1])


if __name__ == "__main__":
    main()
