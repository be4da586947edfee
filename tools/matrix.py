"""Run tests on each Python that the package declares and this machine has, and with the oldest dependencies.

`python -m tools.matrix --ends` is what CI runs: a share of the tests on the oldest Python with the lowest versions that
pyproject.toml allows, and what needs no extra on the newest Python with the newest boto3 and no async client. Without
`--ends` it also runs all tests on each Python with the pinned dependencies. It names each Python that is missing, and
makes one environment anew for each.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
UV = ROOT / ".venv/bin/uv"
HOME = ROOT / ".venv-matrix"
PYTHON = HOME / "bin/python"
# The extras of the environment that most tests run in.
WHOLE = ".[aioboto3,gateway-lambda,http,otel,vectors,view]"
PLAIN = "."
# Versions decide whether all can be imported, how the libraries are called, which text is a time, and what Python says
# of a signature, from which the gateway's calls come. So these are the tests that call each library, and each method
# through the gateway.
# `tests/migrate` needs langgraph-checkpoint-aws, which does not go with the oldest boto3.
SHARE = (
    *shlex.split(
        "tests/cli/test_help.py tests/cli/test_show.py tests/cli/test_listing.py tests/config/test_creation.py"
        " tests/config/test_dynamodb.py tests/format/test_moments.py tests/saver/test_conformance.py"
    ),
    *(
        "tests/gateway/through/test_matrix.py::test_every_method_works_in_every_cell"
        f"[dynamodb-local-{kind}, http, constructor]"
        for kind in ("checkpointer", "store", "cache")
    ),
)
PLAIN_SHARE = shlex.split(
    "tests/dependencies tests/format/test_codec.py tests/runtime/test_attempts.py tests/saver/test_conformance.py"
    " -k 'not moto'"
)
# They are about the versions in one environment, or start programs of another one.
ALL = tuple(
    f"--ignore=tests/{folder}"
    for folder in ("agent_server", "dependencies", "deployed", "documents", "infra")
)


class Environment(NamedTuple):
    """A Python, what is installed for it, and the tests to run."""

    version: str
    python: Path
    package: str
    constraints: str | None
    """The file of the pinned dependencies; `None` takes the lowest."""
    tests: Sequence[str]

    @property
    def title(self) -> str:
        """The environment in words."""
        return f"Python {self.version}, {self.constraints or 'lowest'}"


def declared_versions() -> list[str]:
    """Return the Python versions in the classifiers of pyproject.toml, oldest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def find_python(version: str) -> Path | None:
    """Find an interpreter of a version on the search path, or in pyenv, which keeps the others off that path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = shutil.which(f"python{version}")
    candidates = [Path(found)] if found else []
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)
    return next((each for each in candidates if _runs(each)), None)


def _runs(python: Path) -> bool:
    """Tell whether an interpreter starts: pyenv leaves a script in the place of each that is not selected."""
    command = (str(python), "-c", "import ensurepip, venv")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - an interpreter.


def environments(*, ends: bool) -> Iterator[Environment]:
    """Yield the environments to test, and name each Python that is missing."""
    found = {version: find_python(version) for version in declared_versions()}
    print("Not on this machine:", ", ".join(each for each in found if found[each] is None) or "none")
    pythons = [(version, python) for version, python in found.items() if python is not None]
    yield Environment(*pythons[0], WHOLE, None, SHARE)
    yield Environment(*pythons[-1], PLAIN, "boto3", PLAIN_SHARE)
    if not ends:
        for version, python in pythons:
            yield Environment(version, python, WHOLE, "aioboto3", ALL)


def install(environment: Environment) -> None:
    """Make the virtual environment anew."""
    _run(UV, "venv", "--quiet", "--clear", "--python", environment.python, HOME)
    pip = (UV, "pip", "install", "--quiet", "--python", PYTHON)
    build = ("--build-constraint", "constraints/aioboto3.txt", "--editable", environment.package)
    if environment.constraints is not None:
        _run(*pip, "--constraint", f"constraints/{environment.constraints}.txt", *build, "--group", "test")
        return
    # LangGraph as well: a newer one would raise what the saver shares with it.
    _run(*pip, "--resolution", "lowest-direct", *build, "langgraph>=1.2.4")
    # What the tests need goes by that, so that a release of today raises nothing.
    lowest = HOME / "lowest.txt"
    listed = subprocess.check_output([UV, "pip", "freeze", "--python", PYTHON], text=True)  # noqa: S603 - our own uv.
    lowest.write_text("".join(f"{line}\n" for line in listed.splitlines() if "==" in line))
    _run(*pip, "--constraint", lowest, *build, "--group", "test-lowest")


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - uv and pytest, with arguments from this file.


def main(arguments: Sequence[str] | None = None) -> None:
    """Test the environments one after the other; exit with an error if a test failed in any."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    parser.add_argument(
        "--ends", action="store_true", help="only the oldest and the newest, with a share of the tests"
    )
    options = parser.parse_args(arguments)
    failed = []
    for environment in environments(ends=options.ends):
        print(f"== {environment.title}", flush=True)
        install(environment)
        # Old releases warn about new ones of their own dependencies.
        warnings = (
            ("--override-ini", "filterwarnings=default", "--disable-warnings")
            if environment.constraints is None
            else ()
        )
        pytest = (PYTHON, "-m", "pytest", "-m", "not search", "--numprocesses", "auto")
        # Examples of properties are no matter of versions, so a share of the tests tries a share of them.
        profile = {} if environment.tests is ALL else {"HYPOTHESIS_PROFILE": "quick"}
        ended = subprocess.run(  # noqa: S603 - pytest.
            [*pytest, *warnings, *environment.tests], check=False, cwd=ROOT, env={**os.environ, **profile}
        )
        if ended.returncode:
            failed.append(environment.title)
    if failed:
        sys.exit(f"Failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
