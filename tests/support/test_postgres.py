"""The Postgres server that tests use: it answers, its databases are apart, and what is missing is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest

from tools import postgres
from tools.postgres import Postgres
from tools.server import ServerUnavailableError


def test_databases_are_empty_and_end_with_their_context(postgres_server: Postgres) -> None:
    with postgres_server.database() as one:
        with psycopg.connect(one, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (id int)")
        with postgres_server.database() as other, psycopg.connect(other) as connection:
            found = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'kept'").fetchone()
        assert found == (0,)
        left_open = psycopg.connect(one)
    left_open.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(one)


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
