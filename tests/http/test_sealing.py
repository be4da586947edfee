"""Values that the client encrypts: what stays where it was, and what somebody without the key cannot do."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import override

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb._format.compression import compress
from langgraph.checkpoint.dynamodb._format.limits import PREAMBLE_BYTES, SEGMENT_BYTES_MAX
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.http.sealing import (
    _LENGTHS,
    _SEAL,
    Place,
    Sealer,
    Typed,
    _digest,
    _frames,
)

KEY = b"0123456789abcdef"
MESSAGES = Place("thread", "", "messages")
MARKER = "+sealed:"
MEMORY = 1 << 20


def cipher(key: bytes = KEY) -> CipherProtocol:
    """LangGraph's cipher."""
    return EncryptedSerializer.from_pycryptodome_aes(key=key).cipher


def sealer(bytes_max: int = MEMORY, **options: Any) -> Sealer:
    """A client that remembers nothing yet."""
    return Sealer(cipher(), pieces_bytes_max=bytes_max, **options)


def noise(size: int, seed: object = 0) -> bytes:
    """Return bytes that do not compress."""
    return Random(repr(seed)).randbytes(size)


def text(size: int, seed: object = 0) -> bytes:
    """Return bytes that compress."""
    return noise(size // 2 + 1, seed).hex().encode()[:size]


def value(data: bytes, kind: str = "msgpack") -> Typed:
    """Return a serialized value."""
    return kind, data


SMALL, LARGE = value(text(300)), value(text(100_000))


def pieces(sealed: Typed) -> list[bytes]:
    """Divide a body into its pieces."""
    return [frame.whole for frame in _frames(sealed[1])]


# Reading


SIZES = (0, 1, PREAMBLE_BYTES, PREAMBLE_BYTES + 1, 511, 512, 5_000, 70_000, SEGMENT_BYTES_MAX + 1, 400_000)
PLACES = (
    MESSAGES,
    Place("thread", "inner:1", "messages"),
    Place("thread", "", "messages", "1", "task"),
    Place("thread", "", "", "1"),
)


@pytest.mark.parametrize("content", [noise, text, lambda size: bytes(size)], ids=["noise", "text", "zeros"])
@pytest.mark.parametrize("place", PLACES, ids=["value", "namespace", "write", "metadata"])
def test_what_is_sealed_can_be_opened(place: Place, content: Callable[[int], bytes]) -> None:
    for size in SIZES:
        plain = value(content(size))
        sealed = sealer().seal(place, plain)
        assert sealer().open(place, sealed) == plain


@pytest.mark.parametrize("kind", ["", "null", "json", "application/ld+json", f"odd{MARKER}", "käse"])
def test_any_type_is_kept(kind: str) -> None:
    for size in (3, 5_000):
        plain = value(text(size), kind)
        assert sealer().open(MESSAGES, sealer().seal(MESSAGES, plain)) == plain


def test_neither_type_nor_body_shows_the_value() -> None:
    secret = b"the value of the matter"
    for size in (0, 100, 5_000, 200_000):
        kind, body = sealer().seal(MESSAGES, value(noise(size) + secret))
        seal = urlsafe_b64decode(kind.rpartition(MARKER)[2])
        assert all(secret[at : at + 8] not in body + seal for at in range(len(secret) - 8))
        assert noise(size)[:8] not in (body, seal) or size == 0


@given(st.data())
def test_any_change_of_a_value_is_read_by_another_process(data: st.DataObject) -> None:
    writer, reader = sealer(), sealer(data.draw(st.sampled_from([0, 20_000, MEMORY])))
    current = text(data.draw(st.integers(0, 60_000)))
    for step in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(current)))
        end = data.draw(st.integers(start, min(len(current), start + 9_000)))
        current = current[:start] + text(data.draw(st.integers(0, 9_000)), step) + current[end:]
        plain = value(current)
        assert reader.open(MESSAGES, writer.seal(MESSAGES, plain)) == plain
        if data.draw(st.booleans()):
            writer, reader = reader, writer


def test_threads_seal_and_open_side_by_side() -> None:
    shared = sealer(200_000)

    def run(number: int) -> bool:
        place = Place(f"thread {number % 3}", "", f"channel {number % 2}")
        plains = [value(text(2_000 * step, number)) for step in range(20)]
        return all(shared.open(place, shared.seal(place, each)) == each for each in plains)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(run, range(24)))


# What stays where it was


def grown(start: bytes, by: bytes) -> Typed:
    """A list with one more element: its first bytes change with its length."""
    return value(bytes([len(start) % 251]) + start[1:] + by)


def test_a_body_that_grows_begins_as_before() -> None:
    client, plain = sealer(), value(text(30_000))
    before = client.seal(MESSAGES, plain)
    for step in range(20):
        plain = grown(plain[1], text(700, step))
        after = client.seal(MESSAGES, plain)
        assert after[1].startswith(before[1])
        # The piece of what is new, compressed, and what goes with each piece.
        assert 0 < len(after[1]) - len(before[1]) < 500
        assert after[0] != before[0]
        before = after


def test_small_additions_become_one_piece() -> None:
    client, plain = sealer(), value(text(30_000))
    count = len(pieces(client.seal(MESSAGES, plain)))
    for step in range(40):
        plain = grown(plain[1], text(50, step))
        sealed = client.seal(MESSAGES, plain)
    assert len(pieces(sealed)) <= count + 4


def test_pieces_around_an_edit_keep_their_bytes() -> None:
    client, data = sealer(), text(200_000)
    before = pieces(client.seal(MESSAGES, value(data)))
    after = pieces(client.seal(MESSAGES, value(data[:90_000] + b"edited" + data[90_100:])))
    assert len(set(before) - set(after)) <= 2
    trimmed = pieces(client.seal(MESSAGES, value(data[:16] + data[30_000:])))
    assert set(before) & set(trimmed) >= set(before[3:]) & set(after)


def test_who_has_read_a_value_uses_its_pieces_again() -> None:
    plain = value(text(100_000))
    stored = sealer().seal(MESSAGES, plain)
    reader = sealer()
    reader.open(MESSAGES, stored)
    assert reader.seal(MESSAGES, plain)[1] == stored[1]


def test_a_value_that_moves_to_another_channel_or_a_write_keeps_its_pieces() -> None:
    client, plain = sealer(), value(text(30_000))
    for step in range(20):
        plain = grown(plain[1], text(700, step))
        stored = pieces(client.seal(Place("thread", "", "__start__"), plain))
    assert pieces(client.seal(MESSAGES, plain)) == stored
    assert pieces(client.seal(Place("thread", "", "other", "1", "task"), plain)) == stored


@pytest.mark.parametrize("other", [Place("other", "", "messages"), Place("thread", "inner", "messages")])
def test_threads_and_namespaces_share_nothing(other: Place) -> None:
    client, plain = sealer(), value(text(100_000))
    assert not set(pieces(client.seal(MESSAGES, plain))) & set(pieces(client.seal(other, plain)))


def test_what_is_small_or_stored_once_is_one_piece() -> None:
    write, metadata = Place("thread", "", "messages", "1", "task"), Place("thread", "", "", "1")
    for place, plain in ((MESSAGES, SMALL), (write, SMALL), (write, LARGE), (metadata, LARGE)):
        kind, body = sealer().seal(place, plain)
        assert kind == f"msgpack{MARKER}"
        # What goes with each piece, and the digest.
        assert len(body) <= len(plain[1]) + 60


def test_without_memory_nothing_is_used_again() -> None:
    client, plain = sealer(0), value(text(100_000))
    assert not set(pieces(client.seal(MESSAGES, plain))) & set(pieces(client.seal(MESSAGES, plain)))


def test_the_memory_is_bounded() -> None:
    client, plain = sealer(300_000), value(noise(100_000))
    places = [Place(f"thread {number}", "", "messages") for number in range(10)]
    stored = [client.seal(each, plain) for each in places]
    # Nine values of small size, metadata and writes take none.
    for number in range(9):
        client.seal(Place(f"small {number}", "", "messages"), value(b"small"))
        client.seal(Place("thread 9", "", "", f"{number}"), plain)
        client.seal(Place("thread 9", "", "messages", f"{number}", "task"), value(noise(100_000, number)))
    client.seal(Place("other", "", "messages", "1", "task"), value(noise(140_000)))
    again = [
        client.seal(each, plain)[1] == old[1] for each, old in zip(places[::-1], stored[::-1], strict=True)
    ]
    assert again == [True, True, *[False] * 8]


def test_a_piece_names_its_cipher_so_that_keys_can_rotate() -> None:
    old, new = cipher(), cipher(b"fedcba9876543210")

    class Rotating(CipherProtocol):
        def __init__(self, newest: str) -> None:
            self._newest = newest

        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return self._newest, {"a+b": old, "new": new}[self._newest].encrypt(plaintext)[1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return {"a+b": old, "new": new}[ciphername].decrypt("aes", ciphertext)

    data = text(100_000)
    stored = Sealer(Rotating("a+b"), pieces_bytes_max=MEMORY).seal(MESSAGES, value(data))
    after = Sealer(Rotating("new"), pieces_bytes_max=MEMORY)
    assert after.open(MESSAGES, stored) == value(data)
    longer = value(data + text(1_000, 1))
    assert (
        Sealer(Rotating("a+b"), pieces_bytes_max=MEMORY).open(MESSAGES, after.seal(MESSAGES, longer))
        == longer
    )


# What somebody without the key cannot do


def refused(place: Place, sealed: Typed) -> Exception:
    """Return the error of a client with the key, about something that it is given."""
    with pytest.raises((CheckpointCorruptionError, CheckpointerConfigurationError)) as raised:
        sealer().open(place, sealed)
    assert repr(place.thread_id) in str(raised.value)
    return raised.value


@pytest.mark.parametrize("plain", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "change",
    [
        {"thread_id": "other"},
        {"namespace": "other"},
        {"channel": "other"},
        {"channel": ""},
        {"checkpoint_id": "2"},
        {"checkpoint_id": ""},
        {"task_id": "other"},
        {"task_id": ""},
        {"checkpoint_id": "", "task_id": ""},
        # The same text, divided in another way.
        {"thread_id": "threadmessages", "channel": ""},
    ],
    ids=str,
)
def test_a_value_cannot_be_moved(change: dict[str, str], plain: Typed) -> None:
    place = Place("thread", "", "messages", "1", "task")
    elsewhere = replace(place, **change)
    for start, end in ((place, elsewhere), (elsewhere, place)):
        assert isinstance(refused(end, sealer().seal(start, plain)), CheckpointCorruptionError)


@pytest.mark.parametrize("plain", [SMALL, LARGE], ids=["small", "large"])
def test_a_value_cannot_pass_for_another_type(plain: Typed) -> None:
    kind, body = sealer().seal(MESSAGES, plain)
    refused(MESSAGES, (kind.replace("msgpack", "pickle"), body))
    refused(MESSAGES, (f"{MARKER}{kind}", body))


def _attacks(client: Sealer) -> dict[str, Callable[[list[bytes]], list[bytes]]]:
    """What can be done to the pieces of a body, by name; others' pieces are from the same client."""
    of_thread = pieces(client.seal(Place("other", "", "messages"), LARGE))
    of_channel = pieces(client.seal(Place("thread", "", "other"), value(text(100_000, 1))))
    older = pieces(client.seal(MESSAGES, value(text(90_000, 2))))
    return {
        "the last is cut off": lambda own: own[:-1],
        "the first is cut off": lambda own: own[1:],
        "one in the middle is cut out": lambda own: own[:2] + own[3:],
        "all are cut off": lambda own: [],
        "the last is there twice": lambda own: [*own, own[-1]],
        "the first is there twice": lambda own: [own[0], *own],
        "two are exchanged": lambda own: [own[1], own[0], *own[2:]],
        "all are in reverse": lambda own: own[::-1],
        "one of another thread": lambda own: [of_thread[0], *own[1:]],
        "all of another thread": lambda own: of_thread,
        "one of another channel": lambda own: [*own, of_channel[0]],
        "all of an older value": lambda own: older,
        "one of an older value": lambda own: [*own[:-1], older[-1]],
        "a seal": lambda own: [*own, client.seal(MESSAGES, SMALL)[1]],
        "a part of one": lambda own: [*own[:-1], own[-1][:-1]],
        "bytes behind the last": lambda own: [*own, b"\0"],
        "an empty piece": lambda own: [*own, bytes(5)],
        "two that pass for one": lambda own: [
            _LENGTHS.pack(3, len(own[0]) - 8 + len(own[1])) + own[0][5:] + own[1],
            *own[2:],
        ],
    }


@pytest.mark.parametrize("name", _attacks(sealer()))
def test_pieces_cannot_be_moved_cut_off_repeated_or_reordered(name: str) -> None:
    client = sealer()
    attack = _attacks(client)[name]
    kind, body = client.seal(MESSAGES, LARGE)
    own = pieces((kind, body))
    assert len(own) > 4
    changed = b"".join(attack(own))
    assert changed != body
    assert isinstance(refused(MESSAGES, (kind, changed)), CheckpointCorruptionError)


def test_no_byte_can_be_changed() -> None:
    client = sealer()
    kind, body = client.seal(MESSAGES, value(text(700)))
    seal = urlsafe_b64decode(kind.rpartition(MARKER)[2])
    _, small = client.seal(MESSAGES, SMALL)

    def changed(data: bytes, at: int) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    for at in range(len(body)):
        refused(MESSAGES, (kind, changed(body, at)))
    for at in range(len(seal)):
        refused(MESSAGES, (f"msgpack{MARKER}{urlsafe_b64encode(changed(seal, at)).decode()}", body))
    for at in range(len(small)):
        refused(MESSAGES, (f"msgpack{MARKER}", changed(small, at)))
        refused(MESSAGES, (f"msgpack{MARKER}", small[:at]))
    refused(MESSAGES, (f"msgpack{MARKER}", small + small))


@pytest.mark.parametrize("seal", ["a", "ä", "A" * 8, "A" * 44, "!"])
def test_what_is_no_seal_is_refused(seal: str) -> None:
    refused(MESSAGES, (f"msgpack{MARKER}{seal}", b""))
    refused(MESSAGES, (f"msgpack{MARKER}", seal.encode()))


def test_the_seal_of_another_value_does_not_fit() -> None:
    client = sealer()
    older_kind, older_body = client.seal(MESSAGES, LARGE)
    kind, body = client.seal(MESSAGES, value(LARGE[1] + text(2_000, 1)))
    refused(MESSAGES, (older_kind, body))
    refused(MESSAGES, (kind, older_body))


def test_a_user_of_the_agent_cannot_write_a_seal() -> None:
    # What a user says is encrypted in a piece. It is all that a seal of another arrangement would hold, with this
    # place and these pieces, which a reader of the table knows.
    client = sealer()
    known = b"".join(pieces(client.seal(MESSAGES, LARGE))[1:])
    digest = _digest(MESSAGES, "msgpack", known)
    for content in (_SEAL + digest, digest):
        # It does not compress, so that nothing but the compression stands in front of it.
        said = value(bytes(PREAMBLE_BYTES) + content + b"\0" + noise(600))
        for each in pieces(client.seal(MESSAGES, said)):
            refused(MESSAGES, (f"msgpack{MARKER}{urlsafe_b64encode(each).decode()}", known))
            refused(MESSAGES, (f"msgpack{MARKER}", each))
    assert _SEAL[0] not in (compress(noise(600))[0], compress(bytes(600))[0])


def test_another_key_opens_nothing() -> None:
    other = Sealer(cipher(b"fedcba9876543210"), pieces_bytes_max=MEMORY)
    for plain in (SMALL, LARGE):
        with pytest.raises(CheckpointerConfigurationError, match=r"give the saver the key"):
            sealer().open(MESSAGES, other.seal(MESSAGES, plain))


def test_what_is_not_encrypted_is_refused_unless_allowed() -> None:
    with pytest.raises(CheckpointerConfigurationError, match="is not encrypted"):
        sealer().open(MESSAGES, SMALL)
    lenient = sealer(allow_unencrypted=True)
    assert lenient.open(MESSAGES, SMALL) == SMALL
    assert lenient.open(MESSAGES, lenient.seal(MESSAGES, SMALL)) == SMALL


def test_what_langgraphs_serializer_encrypted_is_refused() -> None:
    # It is bound to no place.
    serde = EncryptedSerializer(cipher(), JsonPlusSerializer())
    kind, data = serde.dumps_typed("said somewhere else")
    refused(MESSAGES, (kind, data))
    framed = _LENGTHS.pack(3, len(data)) + b"aes" + data
    refused(MESSAGES, (f"msgpack{MARKER}", framed))


def test_an_error_names_the_place() -> None:
    sealed = sealer().seal(MESSAGES, SMALL)
    said = {
        Place("t", "n", "c"): "channel 'c' in namespace 'n' of thread 't'",
        Place(
            "t", "n", "c", "1", "k"
        ): "the write of task 'k' to channel 'c' of checkpoint '1' in namespace 'n' of",
        Place("t", "n", "", "1"): "the metadata of checkpoint '1' in namespace 'n' of thread 't'",
    }
    for place, words in said.items():
        with pytest.raises(CheckpointCorruptionError) as raised:
            sealer().open(place, sealed)
        assert str(raised.value).startswith(words)


@pytest.mark.parametrize("client", [HttpCheckpointSaver, HttpCache])
def test_a_serializer_that_encrypts_in_its_own_way_is_refused(client: Any) -> None:
    class Renamed(EncryptedSerializer):
        """The same."""

    class Twice(EncryptedSerializer):
        """Does more, which a client would leave out."""

        @override
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, data = super().dumps_typed(obj)
            return kind, data + data

    client("http://localhost", serde=Renamed(cipher()))
    with pytest.raises(CheckpointerConfigurationError, match="serde is a Twice with its own dumps_typed"):
        client("http://localhost", serde=Twice(cipher()))
