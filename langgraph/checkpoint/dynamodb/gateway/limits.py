"""Limits: how much one request, and one principal, may use."""

from __future__ import annotations

from pydantic import Field

from langgraph.checkpoint.dynamodb.config.fields import Positive, Seconds
from langgraph.checkpoint.dynamodb.config.types import Options


class Limits(Options):
    """The limits of one request and of one principal. `GET /about` shows them to clients."""

    body_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes as it is sent."
    )
    decompressed_bytes_max: Positive = Field(
        default=64 << 20, description="The largest body, in bytes once it is decompressed."
    )
    nesting_max: Positive = Field(
        default=32, le=100, description="How deeply lists and mappings may be nested."
    )
    items_max: Positive = Field(
        default=10_000, description="How many writes, segments, ids or other items one list may have."
    )
    values_max: Positive = Field(
        default=100_000, description="How many values, lists, mappings and their keys a body may have in all."
    )
    search_bytes_max: Positive = Field(
        default=16 << 20, description="How many bytes one search of memories may read from the table."
    )
    request_seconds_max: Seconds = Field(
        default=50,
        description="How long a request may take until its answer begins, and each document of a list.",
    )
    stall_seconds_max: Seconds = Field(
        default=30,
        description=(
            "How many seconds a client may pause, in all, while it sends a body or reads an"
            " answer; bytes that move earn time."
        ),
    )
    bytes_per_second_min: Positive = Field(
        default=16 << 10, description="The bytes that have to move to earn a second."
    )
    requests_per_second: Seconds | None = Field(
        default=None,
        description="How many requests a tenant may make per second, on average, of each process, and one principal of"
        " it three quarters of that; by default as many as come.",
    )
    burst_requests: Positive | None = Field(
        default=None,
        description="How many requests a tenant that was idle may make at once; by default twice its rate.",
    )
    in_flight_max: Positive = Field(
        default=64, description="How many requests a process works on at a time; others wait for their turn."
    )
    waiting_max: Positive = Field(
        default=1000,
        description="How many requests may wait; those of whoever has the most are refused first.",
    )
