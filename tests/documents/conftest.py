"""The site, built once for the tests that look at it."""

import sys
from pathlib import Path

import pytest

from tests.support.documents import ROOT
from tests.support.programs import ran


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, somewhere else."""
    folder = tmp_path_factory.mktemp("site")
    build = ("mkdocs", "build", "--strict", "--quiet", "--site-dir", folder)
    ran(sys.executable, "-m", *build, cwd=ROOT)
    return folder
