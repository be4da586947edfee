"""The versions in an environment: of the lines that it is there for.

The libraries tell which environment it is: each brings those of the environments behind it as well.
"""

import importlib
import importlib.util
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

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


def test_the_libraries_are_of_the_lines_that_the_environment_is_for() -> None:
    for name, least in LINES[ENVIRONMENT].items():
        assert Version(version(name)) >= Version(least)
        importlib.import_module(name.replace("-", "_"))
    older = pinned(NEWER_THAN[ENVIRONMENT]) if ENVIRONMENT in NEWER_THAN else {}
    for name in {"aiobotocore", "boto3", "botocore"} & older.keys() & pinned(ENVIRONMENT).keys():
        assert Version(version(name)) >= older[name]
