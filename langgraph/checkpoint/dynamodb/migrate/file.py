"""A thread as a file of JSON lines, and such a file as a source to move a thread from.

`docs/migrating.md` has the format. Values are as the serializer returned them. Equal pieces are in the file once, so
it grows with what a conversation adds, and not with its length times its state.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any, BinaryIO, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from .._format import items, limits, segments
from .._operations.entries import ThreadDescription, is_of_tenant
from ..errors import CheckpointerConfigurationError, CheckpointNotFoundError
from .lines import Line, LineWriter, read_lines, unexpected
from .record import Record, Ref, WritePosition, WriteRecord
from .saver_endpoint import KINDS, SaverEndpoint

FORMAT = "langgraph-thread"
_PIECE_DIGITS = 32
# How many pieces stay cached for the next checkpoint, which has most of them.
_PIECES_KEPT = 4096


# Export


@dataclass
class Exported:
    """The result of an export."""

    thread_id: str
    checkpoints: int = 0
    writes: int = 0
    bytes: int = 0


def export_thread(source: SaverEndpoint, thread_id: str, file: BinaryIO) -> Exported:
    """Write a thread to a file. Values that are encrypted at the source are not encrypted in the file.

    Args:
        source: The endpoint that has the thread.
        thread_id: The thread.
        file: The file to write to. It need not be seekable.

    Returns:
        The numbers of what was written.

    Raises:
        CheckpointNotFoundError: The source has no such thread; nothing was written.
    """
    if source.can_pass_through():
        source.keep_values()
    refs = source.refs(thread_id)
    if not refs:
        raise CheckpointNotFoundError(f"there is no thread {thread_id!r} to export; check its id")
    about = vars(source.description(thread_id) or ThreadDescription())
    described = {name: value for name, value in about.items() if value}
    lines = LineWriter(file, FORMAT, thread_id=thread_id, **described)
    writer, exported = _RecordWriter(source, lines), Exported(thread_id)
    for record in source.records(thread_id, refs):
        if record is not None:
            writer.write(record)
            exported.checkpoints += 1
            exported.writes += len(record.writes)
    lines.end()
    exported.bytes = lines.bytes
    return exported


class _RecordWriter:
    """Writes a line for each checkpoint, and each piece of values once."""

    def __init__(self, source: SaverEndpoint, lines: LineWriter) -> None:
        self._source = source
        self._lines = lines
        self._pieces = set[str]()

    def write(self, record: Record) -> None:
        checkpoint: Mapping[str, Any] = record.checkpoint
        rest = {name: each for name, each in checkpoint.items() if name != "channel_values"}
        self._lines.write({
            "checkpoint": record.ref.checkpoint_id,
            "namespace": record.namespace,
            "parent": record.parent_id,
            "body": self._value(rest),
            "metadata": self._value(record.metadata),
            "values": {name: self._value(each) for name, each in checkpoint["channel_values"].items()},
            "writes": [
                {
                    "task": each.position.task_id,
                    "path": each.position.task_path,
                    "position": each.position.number,
                    "channel": each.channel,
                    "value": self._value(each.value),
                }
                for each in record.writes
            ],
        })  # fmt: skip

    def _value(self, value: Any) -> Line:
        """Return a value as its type, its pieces and its tail. New pieces are written in lines of their own first."""
        kind, data = self._source.dumps(value)
        # Equal parts of values of other lengths have to be equal pieces too.
        pieces, tail = segments.cut_pieces(bytes(data), 0, limits.SEGMENT_BYTES_MIN)
        names = [each.digest.hex()[:_PIECE_DIGITS] for each in pieces]
        for name, each in zip(names, pieces, strict=True):
            if name not in self._pieces:
                self._pieces.add(name)
                self._lines.write({"piece": name, "data": _base64(each.content)})
        return {"type": kind, **({"pieces": names} if names else {}), "data": _base64(tail)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# Import


def _encodable(text: str) -> str:
    """Return a text. A lone surrogate raises an error, which is a `ValueError`."""
    text.encode()
    return text


_Text: TypeAlias = Annotated[str, AfterValidator(_encodable)]
_Data: TypeAlias = Annotated[bytes, BeforeValidator(partial(base64.b64decode, validate=True))]


class _HeaderLine(BaseModel):
    """The first line."""

    thread_id: str
    owner: _Text | None = None
    title: _Text | None = None
    metadata: dict[str, Any] = {}

    def about(self) -> ThreadDescription:
        """Return what the directory had of the thread."""
        return ThreadDescription(self.owner, self.title, self.metadata)


class _PieceLine(BaseModel):
    """The line of a piece of values."""

    piece: str
    data: _Data


class _ValueForm(BaseModel):
    """A value as a serializer returned it."""

    type: str
    pieces: tuple[str, ...] = ()
    data: _Data


class _WriteForm(BaseModel):
    """A pending write with its position, which the table holds as a whole number of 64 bits."""

    task: _Text
    path: _Text
    position: Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    channel: _Text
    value: _ValueForm


class _CheckpointLine(BaseModel):
    """The line of a checkpoint."""

    checkpoint: _Text
    namespace: _Text
    parent: _Text | None
    body: _ValueForm
    metadata: _ValueForm
    values: dict[str, _ValueForm]
    writes: list[_WriteForm]

    def all_values(self) -> list[_ValueForm]:
        """Return all values of the checkpoint."""
        return [self.body, self.metadata, *self.values.values(), *(each.value for each in self.writes)]


@dataclass
class _Offsets:
    """The offsets of everything in a file."""

    thread_id: str = ""
    about: ThreadDescription = field(default_factory=ThreadDescription)
    checkpoints: dict[Ref, int] = field(default_factory=dict)
    pieces: dict[str, int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)


class FileEndpoint:
    """An exported file as a source to move a thread from. It is checked to its end first."""

    knows_positions = True

    def __init__(self, file: BinaryIO, target: SaverEndpoint, thread_id: str | None = None) -> None:
        """Read the file once.

        Args:
            file: The file, which must be seekable.
            target: The endpoint to move the thread to; its serializer reads the values.
            thread_id: The id to give the thread, or None for its own.

        Raises:
            CheckpointerInputError: It is not an exported file.
            CheckpointFormatError: It was written by a newer release.
            CheckpointCorruptionError: It is cut short, or was changed.
            CheckpointerConfigurationError: The target's serializer is not the one that the values were written with.
        """
        self._file = file
        self._target = target
        self._index = _indexed(file)
        self._thread_id = self._index.thread_id if thread_id is None else thread_id
        self._piece = lru_cache(_PIECES_KEPT)(self._read_piece)
        foreign = self._index.kinds - set(KINDS)
        if foreign and target.can_pass_through():
            raise CheckpointerConfigurationError(
                f"the thread was exported with a serializer of its own, of type {min(foreign)!r}; give the saver the"
                " same one"
            )

    def can_pass_through(self) -> bool:
        """Return True: values are in the file as they were stored."""
        return True

    def keep_values(self) -> None:
        """Do nothing: the target's serializer decides how values are read."""

    def thread_ids(self) -> Iterator[str]:
        """Yield the id that the thread will have."""
        yield self._thread_id

    def description(self, thread_id: str) -> ThreadDescription | None:
        """Return the owner, title and metadata that the thread had, unless its new id is another tenant's."""
        about = self._index.about
        return about if is_of_tenant(items.partition_of(thread_id), about) else None

    def refs(self, thread_id: str) -> list[Ref]:
        """Return the thread's checkpoints, oldest first."""
        return sorted(self._index.checkpoints) if thread_id == self._thread_id else []

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Read checkpoints one after the other."""
        del thread_id
        for ref in refs:
            yield self._record(_CheckpointLine.model_validate(self._line(self._index.checkpoints[ref])))

    def _record(self, line: _CheckpointLine) -> Record:
        values = {name: self._loaded(each) for name, each in line.values.items()}
        checkpoint: Any = {**self._loaded(line.body), "channel_values": values}
        writes = [
            WriteRecord(
                WritePosition(each.path, each.task, each.position), each.channel, self._loaded(each.value)
            )
            for each in line.writes
        ]
        return Record(line.namespace, checkpoint, self._loaded(line.metadata), line.parent, writes)

    def _loaded(self, value: _ValueForm) -> Any:
        return self._target.loads((value.type, b"".join((*map(self._piece, value.pieces), value.data))))

    def _read_piece(self, name: str) -> bytes:
        return _PieceLine.model_validate(self._line(self._index.pieces[name])).data

    def _line(self, offset: int) -> Line:
        self._file.seek(offset)
        line: Line = json.loads(self._file.readline())
        return line


def _indexed(file: BinaryIO) -> _Offsets:
    """Read a file to its end, and record the offsets of everything in it.

    What the table could not hold is refused here: it would look like damage there.
    """
    index = _Offsets()
    for number, (offset, line) in enumerate(read_lines(file, FORMAT), 1):
        _note(index, number, line, offset)
    return index


def _note(index: _Offsets, number: int, line: Line, offset: int) -> None:
    try:
        if number == 1:
            header = _HeaderLine.model_validate(line)
            index.thread_id, index.about = header.thread_id, header.about()
        elif "piece" in line:
            index.pieces[_PieceLine.model_validate(line).piece] = offset
        else:
            _note_checkpoint(index, _CheckpointLine.model_validate(line), offset)
    except ValidationError as error:
        first = error.errors()[0]
        raise unexpected(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (KeyError, TypeError) as error:
        raise unexpected(number, error) from error


def _note_checkpoint(index: _Offsets, line: _CheckpointLine, offset: int) -> None:
    for value in line.all_values():
        index.kinds.add(value.type)
        if not index.pieces.keys() >= set(value.pieces):
            raise KeyError(*value.pieces)
    index.checkpoints[Ref(line.checkpoint, line.namespace)] = offset
