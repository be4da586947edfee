"""Run tests on each Python that the package declares and this machine has, and with the oldest dependencies.

`python -m tools.matrix` runs the tests on each Python with the pinned dependencies. On the oldest Python it also runs a
share of them with the lowest versions that pyproject.toml allows, with and without the extras. With `--ends` it runs
those, and the same share on the newest Python with the pinned dependencies, unless that is the one that it runs on
itself: what CI runs. It names each Python that is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
UV = ROOT / ".venv/bin/uv"
CURRENT = f"{sys.version_info[0]}.{sys.version_info[1]}"
# The extras of the environment that most tests run in.
WHOLE = ".[aioboto3,gateway-lambda,http,otel,vectors,view]"
PLAIN = "."
# What commands do when they are interrupted, or find what changed meanwhile, is no matter of versions, nor is what they
# refuse. So of these files it is one test for each command.
ONE_FOR_EACH = {
    "tests/cli/test_many.py": (
        "test_what_runs_stored_is_deleted",
        "test_threads_are_copied",
        "test_the_newest_are_kept",
    ),
    "tests/cli/test_person.py": (
        "test_everything_of_a_person_is_erased",
        "test_everything_of_a_person_is_exported",
    ),
    "tests/cli/test_memories.py": (
        "test_namespaces_are_listed_so_that_they_can_be_given_again",
        "test_a_memory_is_shown",
        "test_memories_are_searched",
        "test_a_memory_is_stored_and_replaced",
        "test_a_memory_is_deleted_after_a_question",
        "test_memories_go_to_a_file_and_back",
        "test_memories_are_moved",
    ),
    "tests/cli/test_migrate.py": ("test_threads_are_moved_and_what_they_took_is_said",),
    "tests/cli/test_set_ttl.py": ("test_it_says_what_it_costs_and_asks",),
    "tests/cli/test_verify.py": (
        "test_one_thread_is_verified_without_a_scan",
        "test_a_repair_removes_what_nothing_can_reach",
    ),
}
# The command line, the configuration and the saver need most of the dependencies.
SHARE = (
    *(
        path
        for path in sorted(each.relative_to(ROOT).as_posix() for each in ROOT.glob("tests/cli/test_*.py"))
        if path not in ONE_FOR_EACH
    ),
    *(f"{path}::{name}" for path, names in ONE_FOR_EACH.items() for name in names),
    "tests/config",
    "tests/saver/test_conformance.py",
)
# The stored format needs none of the extras, and is tried without them. Values of many segments take long, and differ
# from those of a few in nothing that a version decides.
FORMAT = ("tests/format", "--ignore=tests/format/test_sizes.py")
PLAIN_SHARE = (*FORMAT, "tests/saver/test_conformance.py")
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
    lowest: bool
    tests: Sequence[str]

    @property
    def home(self) -> Path:
        """The directory of the virtual environment."""
        return ROOT / "-".join((".venv", self.version, *self._words))

    @property
    def title(self) -> str:
        """The environment in words."""
        return " ".join(("Python", self.version, *self._words))

    @property
    def _words(self) -> Sequence[str]:
        return [
            word for word, is_said in (("lowest", self.lowest), ("plain", self.package == PLAIN)) if is_said
        ]


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
    yield Environment(*pythons[0], WHOLE, lowest=True, tests=SHARE)
    yield Environment(*pythons[0], PLAIN, lowest=True, tests=PLAIN_SHARE)
    if ends:
        # The environment of all other tests has the pinned dependencies already.
        pythons = [each for each in pythons[-1:] if each[0] != CURRENT]
    for version, python in pythons:
        yield Environment(version, python, WHOLE, lowest=False, tests=(*SHARE, *FORMAT) if ends else ALL)


def install(environment: Environment) -> None:
    """Make the virtual environment, or bring an older one up to date."""
    python = environment.home / "bin/python"
    if not python.exists():
        _run(UV, "venv", "--quiet", "--python", environment.python, environment.home)
    pip = (UV, "pip", "install", "--quiet", "--python", python)
    build = ("--build-constraint", "constraints/aioboto3.txt", "--editable", environment.package)
    if not environment.lowest:
        _run(*pip, "--constraint", "constraints/aioboto3.txt", *build, "--group", "test")
        return
    # LangGraph as well: a newer one would raise what the saver shares with it.
    _run(*pip, "--resolution", "lowest-direct", *build, "langgraph>=1.2.4")
    # What the tests need goes by that, so that a release of today raises nothing.
    lowest = environment.home / "lowest.txt"
    listed = subprocess.check_output([UV, "pip", "freeze", "--python", python], text=True)  # noqa: S603 - our own uv.
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
            ("--override-ini", "filterwarnings=default", "--disable-warnings") if environment.lowest else ()
        )
        pytest = (
            environment.home / "bin/python",
            "-m",
            "pytest",
            "-m",
            "not search",
            "--numprocesses",
            "auto",
        )
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
