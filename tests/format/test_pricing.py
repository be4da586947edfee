"""Sizes of items as DynamoDB counts them, and the units of requests."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, read_units, write_units
from tests.support import dynamodb_values


@pytest.mark.parametrize("number", ["0", "-12.5", "1763800000", "100", "0.001"])
def test_all_kinds_of_values_are_measured(number: str) -> None:
    item: Any = {"n": {"N": number}, "flag": {"BOOL": True}, "set": {"BS": [b"12345678"]}, "é": {"S": "é"}}
    assert item_bytes(item) == dynamodb_values.item_bytes(item)


def test_units_are_counted_up() -> None:
    assert [write_units(each) for each in (0, 1024, 1025)] == [1, 1, 2]
    assert [read_units(each) for each in (1, 4096, 4097)] == [0.5, 0.5, 1.0]
    assert read_units(4097, consistent=True) == 2.0
