"""The versions in an environment: those that it pins, of the lines that it is there for.

The libraries tell which environment it is: each brings those of the environments behind it as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tests.conftest import measured_packages

CONSTRAINTS_FOLDER = Path(__file__).parents[2] / "constraints"
# For each environment the least version of what it is there for, and the libraries that have to be newer than another
# environment allows.
LINES: dict[str, dict[str, str]] = {
    "aioboto3": {"aioboto3": "15"},
    "aiobotocore": {"aiobotocore": "2", "langchain-aws": "1.9"},
    "boto3": {"boto3": "1.44", "botocore": "1.44"},
}
NEWER_THAN = {"aiobotocore": "aioboto3", "boto3": "aiobotocore"}
ENVIRONMENT = next(name for name in LINES if importlib.util.find_spec(name) is not None)


def pinned(environment: str) -> dict[str, Version]:
    """Return the version of every package that an environment pins for this Python and platform."""
    lines = (CONSTRAINTS_FOLDER / f"{environment}.txt").read_text().splitlines()
    requirements = [Requirement(line) for line in lines if not line.lstrip().startswith("#")]
    return {
        each.name: Version(str(each.specifier).removeprefix("=="))
        for each in requirements
        if each.marker is None or each.marker.evaluate()
    }


def installed(name: str) -> Version | None:
    """Return the version of a package that is installed; `None` if it is not."""
    try:
        return Version(version(name))
    except PackageNotFoundError:
        return None


def test_what_is_installed_is_what_is_pinned() -> None:
    wanted = pinned(ENVIRONMENT)
    found = {name: installed(name) for name in wanted}
    assert {name: each for name, each in found.items() if each not in (None, wanted[name])} == {}


def test_the_libraries_are_of_the_lines_that_the_environment_is_for() -> None:
    for name, least in LINES[ENVIRONMENT].items():
        assert Version(version(name)) >= Version(least)
        importlib.import_module(name.replace("-", "_"))
    older = pinned(NEWER_THAN[ENVIRONMENT]) if ENVIRONMENT in NEWER_THAN else {}
    for name in {"aiobotocore", "boto3", "botocore"} & older.keys() & pinned(ENVIRONMENT).keys():
        assert Version(version(name)) >= older[name]


def test_each_package_that_is_measured_is_one_that_the_makefile_runs_measured() -> None:
    command = shlex.split("make --dry-run test-all")
    root = CONSTRAINTS_FOLDER.parent
    printed = subprocess.check_output(command, cwd=root, text=True)  # noqa: S603  # Our own Makefile.
    (line,) = (line for line in printed.splitlines() if "--cov" in line)
    places = re.findall(r" tests/(?:test_)?(\w+)", line)
    assert sorted(places) == sorted(measured_packages())
