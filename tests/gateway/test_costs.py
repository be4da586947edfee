"""Costs: what the most expensive body of about 1 KB takes of CPU and memory, of every parser and check."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from langgraph.checkpoint.dynamodb.gateway.bodies import compressed
from tests.gateway.conftest import MakeClient
from tests.gateway.crafted import CRAFTED, LIMITS

# Several times what docs/gateway.md says, since machines differ.
CPU_SECONDS_MAX = 4.0
MEMORY_BYTES_MAX = 8 * LIMITS.decompressed_bytes_max


@pytest.fixture
def traced() -> Iterator[Callable[[], int]]:
    """Trace memory, and give a function that tells the most that was used."""
    gc.collect()
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize(("endpoint", "make_body"), CRAFTED.values(), ids=CRAFTED)
async def test_a_small_body_costs_little_cpu(
    endpoint: str, make_body: Callable[[], bytes], make_client: MakeClient
) -> None:
    body = make_body()
    content = compressed(body, "zstd")
    assert len(content) < 10_000
    assert len(body) <= LIMITS.decompressed_bytes_max
    headers = {"content-type": "application/json", "content-encoding": "zstd"}
    seconds = []
    async with make_client() as client:
        for _ in range(3):
            began = time.process_time()
            answer = await client.post(f"/checkpoints/{endpoint}", content=content, headers=headers)
            seconds.append(time.process_time() - began)
            # What else the machine does may make one slow, not all of them.
            if seconds[-1] < CPU_SECONDS_MAX:
                break
    assert answer.status_code in (200, 400, 413)
    # An answer that quoted its request would be as large as that is once it is decompressed.
    assert len(answer.content) < 2000
    assert min(seconds) < CPU_SECONDS_MAX


@pytest.mark.search
@pytest.mark.parametrize(("endpoint", "make_body"), CRAFTED.values(), ids=CRAFTED)
async def test_a_small_body_costs_little_memory(
    endpoint: str,
    make_body: Callable[[], bytes],
    make_client: MakeClient,
    traced: Callable[[], int],
) -> None:
    headers = {"content-type": "application/json", "content-encoding": "zstd"}
    content = compressed(make_body(), "zstd")
    # The sender's memory does not count.
    tracemalloc.reset_peak()
    async with make_client() as client:
        await client.post(f"/checkpoints/{endpoint}", content=content, headers=headers)
    assert traced() < MEMORY_BYTES_MAX
