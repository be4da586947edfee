"""Sealed bytes: what comes out is what went in, or an error that names the item."""

import json
import math
from dataclasses import dataclass
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
from langgraph.checkpoint.dynamodb._format import codec as codecs
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import (
    Codec,
    UnreadableError,
    _envelope,
    _verified,
    metadata_json,
    open_plain,
    rough_bytes,
    seal_plain,
)
from langgraph.checkpoint.dynamodb._format.compression import DICTIONARY, compress, decompress
from langgraph.checkpoint.dynamodb._format.limits import SEGMENT_BYTES_MAX
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


def test_an_encrypting_reader_refuses_what_is_not_encrypted() -> None:
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"^item PK='p' SK='S#00' is not encrypted.*allow_unencrypted=True",
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
        with pytest.raises(
            CheckpointCorruptionError,
            match=r"^item PK='p' SK='S#00' has in data .*for another place.* than 'table',.*bound_to",
        ):
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


def test_index_segments_need_no_key_and_are_never_encrypted() -> None:
    assert open_plain(seal_plain(b"ids", SK), ITEM) == b"ids"
    with pytest.raises(
        CheckpointCorruptionError, match=r"^item PK='p' SK='S#00' is damaged: it is encrypted"
    ):
        open_plain(ENCRYPTED.seal(b"ids", ITEM, NAME), ITEM)


@pytest.mark.parametrize("version", [0, 2])
def test_versions_that_no_release_writes_are_damage(version: int) -> None:
    for codec in (PLAIN, ENCRYPTED, MOVING):
        with pytest.raises(CheckpointCorruptionError, match="no release"):
            codec.open(_envelope(version, 0, b"", b"x", SK), ITEM, NAME)


def test_a_reader_without_the_cipher_is_told() -> None:
    with pytest.raises(
        CheckpointerConfigurationError,
        match=r"^item PK='p' SK='S#00' is encrypted with 'aes'.*EncryptedSerializer",
    ):
        PLAIN.open(ENCRYPTED.seal(b"x", ITEM, NAME), ITEM, NAME)


def test_a_reader_with_another_key_is_told() -> None:
    other = Codec(EncryptedSerializer.from_pycryptodome_aes(key=KEY[::-1]), bound_to="table")
    with pytest.raises(
        CheckpointerConfigurationError, match=r"^item PK='p' SK='S#00' is intact but cannot be decrypted"
    ):
        other.open(ENCRYPTED.seal(b"x", ITEM, NAME), ITEM, NAME)


class _Named:
    """A cipher with a name of one's own."""

    def __init__(self, name: str) -> None:
        """Take the name."""
        self.name = name

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Change nothing."""
        return self.name, plaintext

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Take what has the name."""
        assert ciphername == self.name
        return ciphertext


@pytest.mark.parametrize("name", ["", "\ud800", "é" * 128])
def test_a_cipher_whose_name_cannot_be_stored_encrypts_nothing(name: str) -> None:
    codec = Codec(EncryptedSerializer(_Named(name)))
    for beside in (None, 0):
        with pytest.raises(CheckpointerConfigurationError, match="a name of 1 to 255 bytes"):
            codec.seal(b"x", ITEM, NAME, beside=beside)


@pytest.mark.parametrize("name", ["k", "k+1", "é" * 127])
def test_a_cipher_has_any_other_name(name: str) -> None:
    codec = Codec(EncryptedSerializer(_Named(name)))
    assert codec.open(codec.seal(b"x", ITEM, NAME), ITEM, NAME) == b"x"


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1: 2}, b"bytes", {"deep": [object()]}, "\ud800", {"\ud800": 1}]
)
def test_metadata_that_json_would_change_is_not_json(value: object) -> None:
    assert metadata_json({"value": value}) is None


@pytest.mark.parametrize("value", [{"a": ["\u00fc", 1.5, True, None, ("b",)]}, {}])
def test_metadata_are_short_and_readable_json(value: Any) -> None:
    text = metadata_json(value)
    assert text == json.dumps(value, ensure_ascii=False).replace(" ", "")
    assert json.loads(text) == codecs.parse_metadata(ITEM, text)
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert metadata_json({"a": deep}) is None


@pytest.mark.parametrize("drawn", [0, 15])
@pytest.mark.parametrize("beside", [None, 0, 100, 255])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 255, 256, 1000])
def test_what_is_encrypted_is_padded_to_a_step(
    drawn: int, beside: int | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.randbelow", {16: drawn}.__getitem__)
    raw = noise(size)
    sealed = Codec(SERDE, bound_to="table").seal_between(raw, ITEM, NAME, ((), ()), beside=beside)
    assert ENCRYPTED.open_between(sealed, ITEM, NAME, ((), ())) == raw
    name, empty = SERDE.cipher.encrypt(bytes(16))
    padding = len(sealed) - (3 + len(name) + 12 + len(empty)) - size
    step = 16 if beside is None else 256
    assert drawn < padding <= drawn + step
    assert (size + padding if beside is None else beside + len(sealed)) % step == 0
    assert ENCRYPTED.sealed_bytes(raw) == len(sealed) - padding + 16
    assert PLAIN.sealed_bytes(raw) == len(PLAIN.seal(raw, ITEM, NAME, beside=beside)) == 15 + size


def test_the_dictionary_makes_what_checkpoints_have_in_common_short() -> None:
    kind, payload = compress(DICTIONARY)
    assert kind == 1
    assert len(payload) < 50
    assert decompress(kind, payload, len(DICTIONARY)) == DICTIONARY
    assert compress(noise(50)) == (0, noise(50))


@pytest.mark.parametrize(
    ("compression", "payload", "why"),
    [
        (2, b"", "its compression 2 is unknown"),
        (1, b"x", "it cannot be decompressed"),
        (1, compress(bytes(900))[1][:-1], "its compressed data is larger, decompressed, than it may be"),
        (
            1,
            compress(bytes(SEGMENT_BYTES_MAX + 1))[1],
            "its compressed data is larger, decompressed, than it may",
        ),
    ],
)
def test_a_payload_that_cannot_be_decompressed_is_damage(compression: int, payload: bytes, why: str) -> None:
    with pytest.raises(CheckpointCorruptionError) as caught:
        PLAIN.open(_envelope(1, compression, b"", payload, SK), ITEM, NAME)
    assert str(caught.value).startswith(f"item PK='p' SK='S#00' is damaged: {why}")


@pytest.mark.parametrize(
    ("sealed", "why"), [(b"\1\0", "its data is cut short"), (bytes(15), "its data is sealed in a way")]
)
def test_bytes_without_an_envelope_are_damage(sealed: bytes, why: str) -> None:
    with pytest.raises(CheckpointCorruptionError, match=rf"^item PK='p' SK='S#00' is damaged: {why}"):
        PLAIN.open(sealed, ITEM, NAME)
    with pytest.raises(
        CheckpointFormatError, match=r"^item PK='p' SK='S#00' has format version 3, .* up to 2;"
    ):
        PLAIN.open(b"\3" + bytes(14), ITEM, NAME)


def test_what_is_opened_and_joined_is_counted_and_bounded() -> None:
    opened = list[int]()
    counting = Codec(JsonPlusSerializer(), bytes_max=10).counting(opened.append)
    assert counting.open(PLAIN.seal(b"raw", ITEM, NAME), ITEM, NAME) == b"raw"
    counting.check_joined(10, ITEM)
    with pytest.raises(UnreadableError, match=r"^item PK='p' SK='S#00' needs over 10 bytes of memory"):
        counting.check_joined(11, ITEM)
    assert opened == [3, 10]


@dataclass
class _Made:
    field: int


def test_plain_data_make_no_types() -> None:
    codec = Codec(JsonPlusSerializer(allowed_msgpack_modules=True))
    kind, data = codec.dumps([_Made(7)], "value")
    assert codec.loads(kind, data, ITEM) == codec.loads_metadata(kind, data, ITEM) == [_Made(7)]
    assert codec.loads(kind, data, ITEM, plain=True) != [_Made(7)]
    assert type(PLAIN.dumps(bytearray(b"a"), "value")[1]) is bytes
    with pytest.raises(
        UnreadableError, match=r"^item PK='p' SK='S#00' is intact, but the saver's serde cannot read"
    ):
        PLAIN.loads_metadata("msgpack", b"\xc1", ITEM)


class _Object:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("abc", 3),
        (b"ab", 2),
        (bytearray(5), 5),
        (7, 16),
        ([], 16),
        ({"key": "abcd", "other": "ab"}, 6),
        (("abcd", b"12"), 6),
        ({"abcd"}, 4),
        (_Object(a="abc", b=[1]), 19),
        # Three of each end stand for all.
        (["a"] * 3 + ["b" * 100] * 2 + ["cc"] * 3, 12),
        (["a"] * 3 + ["cc"] * 3, 9),
        ([[[["a" * 100]]]], 16),
        ([[["a" * 100]]], 100),
    ],
)
def test_a_size_is_estimated_by_a_few_parts(value: Any, size: int) -> None:
    assert rough_bytes(value) == size


@pytest.mark.parametrize("levels", [100, 101])
def test_metadata_are_readable_up_to_a_depth(levels: int) -> None:
    """On the way no parser of JSON refuses them."""
    nested: Any = 1
    for level in range(levels):
        nested = [nested] if level % 2 else {"a": nested}
    assert (metadata_json(nested) is None) == (levels > 100)
