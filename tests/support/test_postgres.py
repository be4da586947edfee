"""What is said where there is no Postgres."""

import shutil
from pathlib import Path

import pytest

from tools import postgres
from tools.server import ServerUnavailableError


def test_postgres_that_is_not_installed_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(postgres, "_FOLDERS", tmp_path)
    with (
        pytest.raises(ServerUnavailableError, match="install the package `postgresql`"),
        postgres.run_postgres(),
    ):
        pass
