"""The site, built once for the tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, somewhere else."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(  # noqa: S603  # Our own environment.
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder
