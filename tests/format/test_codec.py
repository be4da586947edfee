"""Sealed bytes: what comes out is what went in, or an error that names the item."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointFormatError,
    CheckpointSerializationError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, metadata_json, reseal, seal_plain

SK = "S#00"
ITEM = items.key("p", SK)
PLAIN = Codec(JsonPlusSerializer())
KEY = b"0123456789abcdef"
ENCRYPTED = Codec(EncryptedSerializer.from_pycryptodome_aes(key=KEY))


@given(st.binary(max_size=2_000))
def test_sealed_bytes_open(raw: bytes) -> None:
    for codec in (PLAIN, ENCRYPTED):
        assert codec.open(codec.seal(raw, SK), ITEM) == raw


@given(st.binary(max_size=300), st.data())
def test_no_flipped_bit_passes(raw: bytes, data: st.DataObject) -> None:
    for codec in (PLAIN, ENCRYPTED):
        sealed = bytearray(codec.seal(raw, SK))
        position = data.draw(st.integers(0, len(sealed) - 1))
        sealed[position] ^= 1 << data.draw(st.integers(0, 7))
        with pytest.raises((CheckpointCorruptionError, CheckpointFormatError), match="S#00"):
            codec.open(bytes(sealed), ITEM)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_cleanly(data: bytes) -> None:
    with pytest.raises((CheckpointCorruptionError, CheckpointFormatError), match="S#00"):
        PLAIN.open(data, ITEM)


def test_encryption_hides_the_bytes_and_never_repeats() -> None:
    raw = b"a secret that must not show" * 10
    first, second = ENCRYPTED.seal(raw, SK), ENCRYPTED.seal(raw, SK)
    assert first != second
    assert b"secret" not in first


def test_an_encrypting_reader_reads_what_was_written_before_it() -> None:
    assert ENCRYPTED.open(PLAIN.seal(b"plain", SK), ITEM) == b"plain"


def test_index_segments_need_no_key() -> None:
    assert PLAIN.open(seal_plain(b"ids", SK), ITEM) == ENCRYPTED.open(seal_plain(b"ids", SK), ITEM) == b"ids"


def test_bytes_of_another_item_are_refused() -> None:
    with pytest.raises(CheckpointCorruptionError, match="checksum"):
        PLAIN.open(PLAIN.seal(b"x", "S#01"), ITEM)


def test_resealed_bytes_open_as_the_other_items() -> None:
    resealed = reseal(ENCRYPTED.seal(b"x", SK), ITEM, "S#01")
    assert ENCRYPTED.open(resealed, items.key("p", "S#01")) == b"x"


def test_a_reader_without_the_cipher_is_told() -> None:
    with pytest.raises(CheckpointerConfigurationError, match=r"encrypted with 'aes'.*EncryptedSerializer"):
        PLAIN.open(ENCRYPTED.seal(b"x", SK), ITEM)


def test_a_reader_with_another_key_is_told() -> None:
    other = Codec(EncryptedSerializer.from_pycryptodome_aes(key=KEY[::-1]))
    with pytest.raises(CheckpointerConfigurationError, match="cannot be decrypted"):
        other.open(ENCRYPTED.seal(b"x", SK), ITEM)


def test_a_value_that_cannot_be_written_is_named() -> None:
    with pytest.raises(CheckpointSerializationError, match=r"channel 'socket' cannot be serialized.*serde"):
        PLAIN.dumps(object(), "channel 'socket'")


METADATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), METADATA, max_size=4))
def test_metadata_is_json_where_that_is_exact(metadata: dict[str, Any]) -> None:
    text = metadata_json(metadata)
    if text is not None:
        assert json.loads(text) == metadata
        text.encode()


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1: 2}, b"bytes", {"deep": [object()]}, "\ud800", {"\ud800": 1}]
)
def test_metadata_that_json_would_change_is_not_json(value: object) -> None:
    assert metadata_json({"value": value}) is None


def test_tuples_in_metadata_are_lists_as_langgraph_reads_them() -> None:
    assert metadata_json({"counters": {"a": (1, 2)}}) == '{"counters":{"a":[1,2]}}'
