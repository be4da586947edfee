"""Limits: how much one request, and one principal, may use."""

from __future__ import annotations

from pydantic import Field

from langgraph.checkpoint.dynamodb.config.fields import Positive, Seconds
from langgraph.checkpoint.dynamodb.config.types import Options


class Limits(Options):
    """The limits of one request and of one principal. `GET /about` tells them to clients."""

    body_bytes_max: Positive = Field(
        default=8 << 20, description="How large a body may be as it is sent, in bytes."
    )
    decompressed_bytes_max: Positive = Field(
        default=16 << 20, description="How large a body may be once it is decompressed, in bytes."
    )
    nesting_max: Positive = Field(
        default=32, le=100, description="How deep lists and mappings may be in each other."
    )
    items_max: Positive = Field(
        default=10_000, description="How many writes, segments, ids or other items one list may have."
    )
    values_max: Positive = Field(
        default=100_000, description="How many values, lists, mappings and their keys a body may have in all."
    )
    request_seconds_max: Seconds = Field(
        default=50,
        description="How long a request may take until its answer begins, and each document of a list.",
    )
    stall_seconds_max: Seconds = Field(
        default=30,
        description="How long a body that comes, or an answer that is read, may stand still; what moves earns time.",
    )
    bytes_per_second_min: Positive = Field(
        default=16 << 10, description="How many bytes have to move to earn a second."
    )
    requests_per_second: Seconds | None = Field(
        default=None,
        description="How many requests a tenant may make per second, on average, of each process, and one principal of"
        " it three quarters of that; by default what a process of this machine can serve, measured at start.",
    )
    burst_requests: Positive | None = Field(
        default=None,
        description="How many requests a tenant that was idle may make at once; by default twice its rate.",
    )
    in_flight_max: Positive = Field(
        default=64, description="How many requests a process works on at a time; others wait for their turn."
    )
    waiting_max: Positive = Field(
        default=1000, description="How many requests may wait; those who have most of them are refused first."
    )
