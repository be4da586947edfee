"""A server in place of DynamoDB's, whose answers are said beforehand."""

from collections.abc import Iterator

import pytest

from langgraph.checkpoint.dynamodb._format import limits
from tests.support.scripted import Scripted, scripted_server


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """Give such a server, and wait for moments only before a request is sent again."""
    monkeypatch.setattr(limits, "BACKOFF_SECONDS_MAX", 0.01)
    with scripted_server() as scripted:
        yield scripted
