"""Capacity: how many requests a second a process of this machine can serve, for limits that leave it open."""

from __future__ import annotations

import json
import math
import time

from langgraph.checkpoint.dynamodb.gateway.limits import Limits

# A document to encode and decode. Its cost relates to the cost of other Python work much the same on most machines.
_SAMPLE = {"messages": [{"role": "user", "content": "x" * 40, "number": number} for number in range(100)]}
_SAMPLES = 20
# How many samples take as much processor time as one request of an agent's step: 35 times 0.13 ms where a put or a put
# of writes takes 4.5 ms, the requests to the table included.
_SAMPLES_PER_REQUEST = 35
_ROUNDS = 5


def rate(limits: Limits) -> tuple[float, int]:
    """Return how many requests a tenant may make per second, and how many at once."""
    per_second = limits.requests_per_second or measured_requests_per_second()
    return per_second, limits.burst_requests or math.ceil(2 * per_second)


def measured_requests_per_second() -> float:
    """Measure the rate for some milliseconds, in processor time, so that other processes do not matter."""
    seconds = min(_sample_seconds() for _ in range(_ROUNDS))
    return max(1.0, round(1 / (seconds * _SAMPLES_PER_REQUEST)))


def _sample_seconds() -> float:
    began = time.thread_time()
    for _ in range(_SAMPLES):
        json.loads(json.dumps(_SAMPLE))
    return max(time.thread_time() - began, 1e-6) / _SAMPLES
