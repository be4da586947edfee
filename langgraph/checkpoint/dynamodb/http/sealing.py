"""Encrypting serialized values in the client, so that a changed value costs only what has changed.

The saver finds again what is equal in two versions of a value, but encrypted bytes are new each time. So a value is cut
where the saver would cut it, and each piece is compressed and encrypted by itself. The client remembers the sealed
pieces of the values that it stored or read. A piece that has not changed keeps its sealed bytes, and the service finds
them where they were.

A sealed value is a type and a body, in one of two forms:

- **In pieces**: the body consists of the sealed pieces, and the type is that of the value and the value's seal. The
  seal is new each time, and short. It is outside the body, so that the body stays as it is where the value does.
- **Whole**: the body is a seal that holds the whole value, and the type has none. This is the form of what is small,
  and of writes and metadata, which are stored once.

A seal is encrypted. It holds a digest of the value's place, its type and all sealed pieces, so it authenticates their
number, order and content. It also holds the first bytes of the value, which in most encodings change with its length.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple, TypeAlias

from langgraph.checkpoint.serde.base import CipherProtocol

from langgraph.checkpoint.dynamodb._format.compression import compress, decompress
from langgraph.checkpoint.dynamodb._format.limits import (
    PREAMBLE_BYTES,
    SEALED_TAIL_BYTES_MIN,
    SEGMENT_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.segments import Chunk, Piece, piece, split
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.http.memory import LastUsed

Typed: TypeAlias = tuple[str, bytes]
"""A serialized value, as `dumps_typed` returns it."""

# Stands between a value's type and its seal.
_SEALED = "+sealed:"
# The first byte of a seal before it is encrypted. Pieces begin with their compression instead: what else is in them may
# come from a user of the agent, who could write what looks like a seal.
_SEAL = b"\xff"
# To forge a value, one needs pieces that have the digest of a seal which exists. For that, this is long enough.
_DIGEST_BYTES = 16
# The lengths of the name of a cipher, and of what it encrypted.
_LENGTHS = struct.Struct(">BI")
# What a remembered piece takes beside its sealed bytes.
_PIECE_BYTES = 300


@dataclass(frozen=True)
class Place:
    """The place of a value. A value that was sealed for one place cannot be opened at another."""

    thread_id: str
    """Empty for the cached value of a node, as that of no thread is."""
    namespace: str
    """For a cached value, the path of its labels."""
    channel: str
    """Empty for metadata. For a cached value, its key."""
    checkpoint_id: str = ""
    """The checkpoint of a pending write or of metadata. A channel's value may be that of several checkpoints."""
    task_id: str = ""
    """The task of a pending write."""

    @property
    def partition(self) -> tuple[str, str]:
        """The thread and the namespace, within which sealed pieces are used again."""
        return self.thread_id, self.namespace

    @property
    def is_stored_once(self) -> bool:
        """Whether no later value of the place is like this one: a pending write, metadata, or a cached value."""
        return bool(self.checkpoint_id) or not self.thread_id

    def __str__(self) -> str:
        """Name the place, for an error."""
        if not self.thread_id:
            return "the cached value"
        what = f"channel {self.channel!r}" if self.channel else "the metadata"
        if self.task_id:
            what = f"the write of task {self.task_id!r} to {what}"
        where = f" of checkpoint {self.checkpoint_id!r}" if self.checkpoint_id else ""
        return f"{what}{where} in namespace {self.namespace!r} of thread {self.thread_id!r}"


class Sealer:
    """Seals and opens serialized values with a cipher. Safe to use from several OS threads."""

    def __init__(
        self, cipher: CipherProtocol, *, pieces_bytes_max: int, allow_unencrypted: bool = False
    ) -> None:
        """Take the cipher, and bound the memory for pieces.

        Args:
            cipher: The cipher. It has to authenticate what it encrypts. Use its key for nothing else.
            pieces_bytes_max: The maximum memory for the sealed pieces of recent values, in bytes. With 0, no piece is
                used again, and no equality shows.
            allow_unencrypted: Whether to open values that are not encrypted, too.
        """
        self._cipher = cipher
        # Threads and namespaces share nothing: a reader of the table does not see that two of them have equal parts.
        self._remembered = LastUsed[_KnownPieces](pieces_bytes_max)
        self._allow_unencrypted = allow_unencrypted

    def seal(self, place: Place, value: Typed) -> Typed:
        """Encrypt a serialized value for its place."""
        kind, data = value
        if len(data) < SEALED_TAIL_BYTES_MIN:
            return self._sealed_whole(place, kind, data)
        before, known = self._known(place)
        pieces, tail = split(data, PREAMBLE_BYTES, before)
        if tail:
            pieces.append(piece(tail))
        reused_bytes = sum(len(each.content) for each in pieces if each.digest in known)
        if place.is_stored_once and 2 * reused_bytes < len(data) <= SEGMENT_BYTES_MAX:
            return self._sealed_whole(place, kind, data)
        sealed = [known.get(each.digest) or self._sealed_piece(each.content) for each in pieces]
        self._keep(place, pieces, sealed)
        body = b"".join(sealed)
        seal = self._seal(place, kind, body, data[:PREAMBLE_BYTES])
        return f"{kind}{_SEALED}{urlsafe_b64encode(seal).decode()}", body

    def open(self, place: Place, value: Typed) -> Typed:
        """Decrypt a value of its place, and verify that it is complete.

        Raises:
            CheckpointerConfigurationError: The value is not encrypted, or with another key.
            CheckpointCorruptionError: The value was encrypted for another place, or was changed.
        """
        kind, marker, seal = value[0].rpartition(_SEALED)
        if not marker:
            if self._allow_unencrypted:
                return value
            raise _not_encrypted(place)
        body = value[1] if seal else b""
        try:
            [frame] = _frames(urlsafe_b64decode(seal) if seal else value[1])
        except (ValueError, struct.error) as error:
            raise _changed(place) from error
        content = self._decrypted(place, frame)
        expected = _SEAL + _digest(place, kind, body)
        if not compare_digest(content[: len(expected)], expected):
            raise _changed(place)
        start = _decompressed(content[len(expected) :])
        frames = list(_frames(body))
        pieces = [piece(_decompressed(self._decrypted(place, each))) for each in frames]
        self._keep(place, pieces, [each.whole for each in frames])
        return kind, b"".join((start, *(each.content for each in pieces)))

    def _known(self, place: Place) -> tuple[Sequence[Chunk], Mapping[bytes, bytes]]:
        """Return the chunks that a value's bytes may still have, in order, and sealed bytes by digest."""
        known = self._remembered.get(place.partition) or _KnownPieces({}, {})
        # The value of a new channel, or of a write, may have been that of another channel.
        chunks = known.chunks.get(place.channel) or [each for some in known.chunks.values() for each in some]
        # What is shorter is the end of a value. It is sealed again, together with what follows it now.
        return [each for each in chunks if each.length >= SEALED_TAIL_BYTES_MIN], known.sealed

    def _keep(self, place: Place, pieces: Sequence[Piece], sealed: Sequence[bytes]) -> None:
        """Remember the pieces of a value that the next one of its channel may have too."""
        if place.is_stored_once or not pieces:
            return
        known = self._remembered.get(place.partition) or _KnownPieces({}, {})
        chunks = {**known.chunks, place.channel: [Chunk.of(each, None) for each in pieces]}
        new = {each.digest: data for each, data in zip(pieces, sealed, strict=True)}
        found = {**known.sealed, **new}
        used = {each.digest: found[each.digest] for some in chunks.values() for each in some}
        size_bytes = sum(_PIECE_BYTES + len(each) for each in used.values())
        self._remembered.keep(place.partition, _KnownPieces(chunks, used), size_bytes)

    def _sealed_whole(self, place: Place, kind: str, data: bytes) -> Typed:
        return f"{kind}{_SEALED}", self._seal(place, kind, b"", data)

    def _seal(self, place: Place, kind: str, body: bytes, start: bytes) -> bytes:
        """Return the seal of a value with this body and these first bytes."""
        return self._encrypted(_SEAL + _digest(place, kind, body) + _compressed(start))

    def _sealed_piece(self, content: bytes) -> bytes:
        return self._encrypted(_compressed(content))

    def _encrypted(self, content: bytes) -> bytes:
        """Encrypt content, and return it in a frame with the name of the cipher."""
        cipher_name, encrypted = self._cipher.encrypt(content)
        name = cipher_name.encode()
        return _LENGTHS.pack(len(name), len(encrypted)) + name + encrypted

    def _decrypted(self, place: Place, frame: _Frame) -> bytes:
        try:
            return self._cipher.decrypt(frame.cipher_name, frame.encrypted)
        except Exception as error:
            msg = (
                f"{place} cannot be decrypted with the saver's key ({error}); give the saver the key that the thread"
                " was written with. If it has that key, the value was changed: restore the thread from a backup or"
                " point-in-time recovery"
            )
            raise CheckpointerConfigurationError(msg) from error


def _digest(place: Place, kind: str, body: bytes) -> bytes:
    """Return the digest of a sealed value and its place."""
    digest = sha256()
    for text in (*astuple(place), kind):
        part = text.encode(errors="surrogatepass")
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(body)
    return digest.digest()[:_DIGEST_BYTES]


def _compressed(content: bytes) -> bytes:
    compression, payload = compress(content)
    return bytes([compression]) + payload


def _decompressed(content: bytes) -> bytes:
    return decompress(content[0], content[1:], SEGMENT_BYTES_MAX)


class _Frame(NamedTuple):
    """Encrypted content with the name of its cipher, and all bytes of the frame."""

    whole: bytes
    cipher_name: str
    encrypted: bytes


def _frames(data: bytes) -> Iterator[_Frame]:
    """Yield the frames that data consists of."""
    start = 0
    while start < len(data):
        name_bytes, encrypted_bytes = _LENGTHS.unpack_from(data, start)
        name_at = start + _LENGTHS.size
        encrypted_at = name_at + name_bytes
        end = encrypted_at + encrypted_bytes
        if end > len(data):
            msg = "a frame is cut short"
            raise ValueError(msg)
        yield _Frame(data[start:end], data[name_at:encrypted_at].decode(), data[encrypted_at:end])
        start = end


def _not_encrypted(place: Place) -> CheckpointerConfigurationError:
    return CheckpointerConfigurationError(
        f"{place} is not encrypted, or not for its place, but the saver has a cipher: somebody without the key may have"
        " written it. If it was stored before there was a cipher, read it with"
        " allow_unencrypted=True (`langgraph-dynamodb docs encrypt`); otherwise restore it from a backup"
    )


def _changed(place: Place) -> CheckpointCorruptionError:
    return CheckpointCorruptionError(
        f"{place} has data that was encrypted for another place, or changed afterwards. If the thread is"
        " a copy that the service made, use the original; otherwise restore it from a backup or point-in-time recovery"
    )


class _KnownPieces(NamedTuple):
    """The pieces of the last values of a thread's channels, in one namespace."""

    chunks: Mapping[str, Sequence[Chunk]]
    """By channel, in order."""
    sealed: Mapping[bytes, bytes]
    """The sealed bytes, by digest."""
