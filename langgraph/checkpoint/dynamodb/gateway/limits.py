"""Limits: how much one request, and one principal, may use. Those that nobody needs to change are where they apply."""

from __future__ import annotations

from pydantic import Field

from ..config.fields import Positive, Seconds
from ..config.types import Options

# Well below the timeouts of clients and of API Gateway: the last checkpoint, or thread, that is begun takes longer.
PART_SECONDS = 8.0
_TIMES_A_BODY = 3
# Room for small ones beside the largest one of each of two tenants.
_BESIDE_BYTES = 32 << 20


class Limits(Options):
    """The limits of one request and of one principal. `GET /about` shows them to clients."""

    body_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes as it is sent."
    )
    decompressed_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes once it is decompressed."
    )
    search_bytes_max: Positive = Field(
        default=16 << 20, description="How many bytes one search of memories may read from the table."
    )
    request_seconds_max: Seconds = Field(
        default=50, description="How long a request may take until its answer begins."
    )
    in_flight_max: Positive = Field(
        default=64, description="How many requests a process works on at a time; others wait for their turn."
    )

    @property
    def memory_bytes(self) -> int:
        """How much all requests at work may have in memory: three times the largest body, of two tenants."""
        return 2 * _TIMES_A_BODY * max(self.body_bytes_max, self.decompressed_bytes_max)

    def needed_bytes(self, size_bytes: int) -> int:
        """Return how much memory a body takes while it is served: its text, its values, and the items made of them."""
        return _TIMES_A_BODY * size_bytes

    @property
    def wire_bytes(self) -> int:
        """How much of bodies that arrive, or of answers that are read, may be in memory."""
        return 2 * (max(self.body_bytes_max, self.decompressed_bytes_max) + _BESIDE_BYTES)

    @property
    def read_bytes_max(self) -> int:
        """How many bytes of what is stored one request may have in memory: as segments, and as values."""
        return 4 * self.decompressed_bytes_max

    @property
    def answer_bytes(self) -> int:
        """After how many bytes of values an answer ends."""
        return self.body_bytes_max // 2

    @property
    def part_seconds(self) -> float:
        """After how long a page of a list, or a deletion of memories, ends and says where it goes on."""
        return min(PART_SECONDS, self.request_seconds_max / 4)
