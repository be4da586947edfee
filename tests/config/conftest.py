"""No configuration is in the environment of these tests, except what they put there."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("LANGGRAPH_"):
            monkeypatch.delenv(name)
