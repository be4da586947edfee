"""Events as log records."""

import logging

import pytest

from langgraph.checkpoint.dynamodb._runtime.events import Outcome
from langgraph.checkpoint.dynamodb.observe import Event, LogEvents

OK = Event(operation="put", outcome="ok", tenant="acme", duration_seconds=0.25, write_units=2.0)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("acme/1", "acme/1"),
        ("x outcome=error\nWARNING a=b", r'"x outcome=error\nWARNING a=b"'),
        ('a"b', r'"a\"b"'),
        ("a'b", '"a\'b"'),
        ("a\x85b", r'"a\u0085b"'),
        ("", '""'),
    ],
)
def test_a_text_cannot_look_like_fields_or_lines(
    caplog: pytest.LogCaptureFixture, value: str, told: str
) -> None:
    caplog.set_level(logging.DEBUG)
    LogEvents()(Event(operation="put", outcome="ok", thread_id=value))
    (record,) = caplog.records
    assert f" thread_id={told} started_at=" in record.getMessage()
    assert vars(record)["event"]["thread_id"] == value


@pytest.mark.parametrize(
    ("outcome", "level"),
    [
        ("began", logging.INFO),
        ("ok", logging.DEBUG),
        ("error", logging.WARNING),
        ("interrupted", logging.INFO),
    ],
)
def test_the_level_goes_by_the_outcome(
    caplog: pytest.LogCaptureFixture, outcome: Outcome, level: int
) -> None:
    caplog.set_level(logging.DEBUG, "mine")
    LogEvents(logging.getLogger("mine"))(Event(operation="prune", outcome=outcome))
    assert [(each.name, each.levelno) for each in caplog.records] == [("mine", level)]


def test_what_is_not_logged_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    LogEvents()(OK)
    assert not caplog.records
