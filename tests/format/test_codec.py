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
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import (
    Codec,
    _envelope,
    _verified,
    metadata_json,
    open_plain,
    seal_plain,
)
from tests.support.checkpoints import noise

SK = "S#00"
ITEM = items.key("p", SK)
NAME = items.DATA
PLAIN = Codec(JsonPlusSerializer())
KEY = b"0123456789abcdef"
SERDE = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
ENCRYPTED = Codec(SERDE, bound_to="table")
MOVING = Codec(SERDE, bound_to="table", allow_unencrypted=True)


@given(st.binary(max_size=300), st.data())
def test_no_flipped_bit_passes(raw: bytes, data: st.DataObject) -> None:
    for codec in (PLAIN, ENCRYPTED):
        sealed = bytearray(codec.seal(raw, ITEM, NAME))
        # An encrypted length is random.
        position = data.draw(st.integers(0, 10_000)) % len(sealed)
        sealed[position] ^= 1 << data.draw(st.integers(0, 7))
        with pytest.raises((CheckpointCorruptionError, CheckpointFormatError), match="S#00"):
            codec.open(bytes(sealed), ITEM, NAME)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_cleanly(data: bytes) -> None:
    with pytest.raises((CheckpointCorruptionError, CheckpointFormatError), match="S#00"):
        PLAIN.open(data, ITEM, NAME)


def test_encryption_hides_the_bytes_and_never_repeats() -> None:
    raw = b"a secret that must not show" * 10
    first, second = ENCRYPTED.seal(raw, ITEM, NAME), ENCRYPTED.seal(raw, ITEM, NAME)
    assert first != second
    assert b"secret" not in first


def test_an_encrypting_reader_refuses_what_is_not_encrypted() -> None:
    with pytest.raises(
        CheckpointerConfigurationError, match=r"S#00.*is not encrypted.*allow_unencrypted=True"
    ):
        ENCRYPTED.open(PLAIN.seal(b"plain", ITEM, NAME), ITEM, NAME)
    assert MOVING.open(PLAIN.seal(b"plain", ITEM, NAME), ITEM, NAME) == b"plain"


@pytest.mark.parametrize(
    ("codec", "item", "name", "ids"),
    [
        (Codec(SERDE, bound_to="other"), ITEM, NAME, ()),
        (ENCRYPTED, items.key("q", SK), NAME, ()),
        (ENCRYPTED, ITEM, items.BODY, ()),
        (ENCRYPTED, ITEM, NAME, (bytes(8),)),
    ],
    ids=["table", "partition", "attribute", "segments"],
)
def test_what_was_encrypted_for_another_place_is_refused(
    codec: Codec, item: items.Item, name: str, ids: tuple[bytes, ...]
) -> None:
    sealed = codec.seal(b"x", item, name, ((), ids))
    assert codec.open(sealed, item, name, ((), ids)) == b"x"
    for reader in (ENCRYPTED, MOVING):
        with pytest.raises(CheckpointCorruptionError, match=r"S#00.*for another place.*bound_to"):
            reader.open(sealed, ITEM, NAME)


def test_what_was_encrypted_for_another_sort_key_is_refused_though_the_checksum_is_made_right() -> None:
    sealed = ENCRYPTED.seal(b"x", items.key("p", "S#01"), NAME)
    header, payload = _verified(sealed, items.key("p", "S#01"))
    with pytest.raises(CheckpointCorruptionError, match="for another place"):
        ENCRYPTED.open(_envelope(2, header[1], header[3:], payload, SK), ITEM, NAME)


@pytest.mark.parametrize("compression", [0, 1])
def test_bound_bytes_do_not_pass_as_unbound_ones(compression: int) -> None:
    """Who may write could change the version, and so take the place for content."""
    _, payload = _verified(ENCRYPTED.seal(noise(500), ITEM, NAME), ITEM)
    with pytest.raises(CheckpointCorruptionError, match="sealed in a way"):
        ENCRYPTED.open(_envelope(1, compression, b"aes", payload, SK), ITEM, NAME)


def test_content_that_is_in_segments_is_vouched_for() -> None:
    own = (bytes(8), b"\2" * 8)
    voucher = ENCRYPTED.seal_between(b"", ITEM, items.BODY, (own, ()))
    ENCRYPTED.open_between(voucher, ITEM, items.BODY, (own, ()))
    for ids in [(own[::-1], ()), (own[:1], own[1:]), ((), own)]:
        with pytest.raises(CheckpointCorruptionError, match="other segments"):
            ENCRYPTED.open_between(voucher, ITEM, items.BODY, ids)
    with pytest.raises(CheckpointerConfigurationError, match="allow_unencrypted"):
        ENCRYPTED.open_between(b"", ITEM, items.BODY, (own, ()))
    MOVING.open_between(b"", ITEM, items.BODY, (own, ()))
    assert PLAIN.seal_between(b"", ITEM, items.BODY, (own, ())) == b""


def test_plain_bytes_are_as_the_first_release_stored_them() -> None:
    assert PLAIN.seal(b"x", ITEM, NAME)[:3] == seal_plain(b"x", SK)[:3] == b"\1\0\0"


def test_index_segments_need_no_key_and_are_never_encrypted() -> None:
    assert open_plain(seal_plain(b"ids", SK), ITEM) == b"ids"
    with pytest.raises(CheckpointCorruptionError, match="encrypted"):
        open_plain(ENCRYPTED.seal(b"ids", ITEM, NAME), ITEM)


@pytest.mark.parametrize("version", [0, 2])
def test_versions_that_no_release_writes_are_damage(version: int) -> None:
    for codec in (PLAIN, ENCRYPTED, MOVING):
        with pytest.raises(CheckpointCorruptionError, match="no release"):
            codec.open(_envelope(version, 0, b"", b"x", SK), ITEM, NAME)


def test_bytes_of_another_item_are_refused() -> None:
    with pytest.raises(CheckpointCorruptionError, match="checksum"):
        PLAIN.open(PLAIN.seal(b"x", items.key("p", "S#01"), NAME), ITEM, NAME)


def test_a_reader_without_the_cipher_is_told() -> None:
    with pytest.raises(CheckpointerConfigurationError, match=r"encrypted with 'aes'.*EncryptedSerializer"):
        PLAIN.open(ENCRYPTED.seal(b"x", ITEM, NAME), ITEM, NAME)


def test_a_reader_with_another_key_is_told() -> None:
    other = Codec(EncryptedSerializer.from_pycryptodome_aes(key=KEY[::-1]), bound_to="table")
    with pytest.raises(CheckpointerConfigurationError, match="cannot be decrypted"):
        other.open(ENCRYPTED.seal(b"x", ITEM, NAME), ITEM, NAME)


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
