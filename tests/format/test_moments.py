"""Times in ids, and epoch seconds."""

from datetime import datetime, timezone
from uuid import UUID

import pytest

from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, moment_of, stored_at

MOMENT = datetime(2026, 11, 28, 12, 30, 15, 123456, timezone.utc)
STEPS = int((MOMENT - datetime(1582, 10, 15, tzinfo=timezone.utc)).total_seconds()) * 10**7 + 1234567


@pytest.mark.parametrize(
    ("version", "variant", "moment"),
    [(6, 0x8000, MOMENT), (6, 0, MOMENT), (4, 0x8000, None), (7, 0x8000, None)],
)
def test_an_id_of_langgraph_tells_its_time(version: int, variant: int, moment: datetime | None) -> None:
    number = (STEPS >> 12) << 80 | version << 76 | (STEPS & 0xFFF) << 64 | variant << 48 | 0xFFFF
    assert stored_at(str(UUID(int=number))) == moment


@pytest.mark.parametrize("checkpoint_id", [None, "", "mine"])
def test_another_id_tells_no_time(checkpoint_id: str | None) -> None:
    assert stored_at(checkpoint_id) is None


@pytest.mark.parametrize(
    ("seconds", "moment"), [(None, None), (10**20, None), (0, datetime(1970, 1, 1, tzinfo=timezone.utc))]
)
def test_seconds_out_of_range_are_no_time(seconds: int | None, moment: datetime | None) -> None:
    assert in_epoch_seconds(seconds) == moment


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-28T12:30:15.123456+00:00", "2026-11-28T12:30:15.123456+00:00"),
        ("2026-11-28T12:30:15+05:30", "2026-11-28T12:30:15+05:30"),
        ("2026-11-28T12:30:15.5Z", "2026-11-28T12:30:15.500000+00:00"),
        ("2026-11-28t12:30:15,123456789z", "2026-11-28T12:30:15.123456+00:00"),
        ("2026-11-28 12:30", "2026-11-28T12:30:00+00:00"),
        ("2026-11-28", "2026-11-28T00:00:00+00:00"),
    ],
)
def test_every_python_reads_the_same_text_as_a_time(text: str, written: str) -> None:
    assert moment_of(text).isoformat() == written


@pytest.mark.parametrize(
    "text", ["", "now", "2026-W48-6", "20261128", "2026-13-01", "2026-11-28T12", "2026-11-28T12:30.5Z", "1"]
)
def test_no_python_reads_other_text_as_a_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        moment_of(text)


def test_a_time_is_read_as_it_was_written() -> None:
    for moment in (
        MOMENT,
        datetime.min.replace(tzinfo=timezone.utc),
        datetime.max.replace(tzinfo=timezone.utc),
    ):
        assert moment_of(moment.isoformat()) == moment
