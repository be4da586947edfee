"""Files of JSON lines: the first names the format, and the last tells whether the file is whole.

Threads and memories are exported in such files.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, BinaryIO, TypeAlias

from .._format.codec import finite
from ..errors import CheckpointCorruptionError, CheckpointerInputError, CheckpointFormatError

Line: TypeAlias = dict[str, Any]

_VERSION = 1
_DIGEST_BYTES = 32


class LineWriter:
    """Writes a file that need not be seekable."""

    def __init__(self, file: BinaryIO, format_: str, **header: Any) -> None:
        """Write the first line."""
        self._file = file
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self.bytes = 0
        self.write({"format": format_, "version": _VERSION, **header})

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self._digest.update(data)
        self.bytes += len(data)
        self._file.write(data)

    def end(self) -> None:
        """Write the last line."""
        self.write({"end": self._digest.hexdigest()})
        self._file.flush()


def read_lines(file: BinaryIO, format_: str) -> Iterator[tuple[int, Line]]:
    """Read a seekable file to its end.

    Yields:
        Each line but the last, with its offset; first of all the header.

    Raises:
        CheckpointerInputError: It is not such a file.
        CheckpointFormatError: A newer release wrote it.
        CheckpointCorruptionError: It is cut short, or was changed. This may be raised behind the last line.
    """
    file.seek(0)
    digest, offset = blake2b(digest_size=_DIGEST_BYTES), 0
    for number, data in enumerate(file, 1):
        if not data.endswith(b"\n"):
            break
        line = _parsed(data, number)
        if number == 1:
            _check_header(line, format_)
        elif "end" in line:
            if line["end"] != digest.hexdigest() or file.read(1):
                msg = "the file was changed after it was written, or more was added to it; export it again"
                raise CheckpointCorruptionError(msg)
            return
        yield offset, line
        digest.update(data)
        offset += len(data)
    raise CheckpointCorruptionError("the file is cut short: its last line is missing; export it again")


def unexpected(number: int, error: object) -> CheckpointerInputError:
    """Return the error for a line that no export writes."""
    return CheckpointerInputError(
        f"line {number} of the file is not what an export writes ({error!r}); export it again"
    )


def _parsed(data: bytes, number: int) -> Line:
    try:
        line = json.loads(data, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise unexpected(number, error) from error
    if not isinstance(line, dict):
        raise unexpected(number, line)
    return line


def _check_header(line: Line, format_: str) -> None:
    version = line.get("version")
    if line.get("format") != format_ or type(version) is not int:
        raise unexpected(1, f"it has to begin a file of the format {format_}")
    if version > _VERSION:
        raise CheckpointFormatError(
            f"the file has format version {version}, and this release of langgraph-dynamodb reads up to {_VERSION};"
            " upgrade langgraph-dynamodb"
        )
