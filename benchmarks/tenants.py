"""Many tenants in one process, by one saver: what each costs after the first, and what each is billed.

A tenant's first thread fetches its credentials, here from a broker that answers at once, and signs with them. Its
second thread has them. Units are those of the saver's events, by tenant.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import empty_checkpoint

from benchmarks.clock import Times
from benchmarks.contestants import OURS
from benchmarks.figures import Figure, Section, under
from benchmarks.raw import new_table
from benchmarks.report import table
from benchmarks.resident import peak_bytes
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import Event
from langgraph.checkpoint.dynamodb.tenants import TenantCredentials

if TYPE_CHECKING:
    from tools.engine import Engine

_TENANTS = 5_000
_KIB = 1024
_MEMORY_KIB_MAX, _CPU_MS_MAX = 200, 5
# As long as STS's.
_TOKEN_BYTES = 700


def run(engine: Engine) -> Section:
    """Let every tenant begin two threads."""
    credentials, bills = TenantCredentials(_fetch), Counter[str]()

    def bill(event: Event) -> None:
        bills[event.tenant or ""] += round(event.write_units or 0)

    first, second = Times(), Times()
    with (
        new_table(engine, OURS) as name,
        DynamoDBSaver(
            name,
            session=credentials.session(),
            region_name=engine.region_name,
            endpoint_url=engine.endpoint_url,
            on_event=bill,
        ) as saver,
    ):
        _begin(saver, credentials, "first", "1")
        before = peak_bytes()
        for number in range(_TENANTS):
            tenant = f"tenant{number}"
            first.measure(partial(_begin, saver, credentials, tenant, "1"), time.process_time)
            second.measure(partial(_begin, saver, credentials, tenant, "2"), time.process_time)
        each_kib = (peak_bytes() - before) / _TENANTS / _KIB
    added_ms = first.p50_ms - second.p50_ms
    billed = {units for tenant, units in bills.items() if tenant.startswith("tenant")}
    rows = [
        ("memory, KiB", f"{each_kib:.1f}"),
        ("CPU of a put and a read of its first thread, ms", f"{first.p50_ms:.2f}"),
        ("CPU of a put and a read of its second thread, ms", f"{second.p50_ms:.2f}"),
        ("write units billed", " or ".join(map(str, sorted(billed)))),
    ]
    return Section(
        f"{_TENANTS:,} tenants in one process, by one saver: each after the first",
        (table(("a tenant", "median"), rows),),
        (
            under("memory of one more tenant", _MEMORY_KIB_MAX, each_kib, " KiB"),
            under("CPU of one more tenant, beside its requests", _CPU_MS_MAX, added_ms, " ms"),
            Figure("tenants with a bill", f"{_TENANTS:,}", f"{len(bills) - 1:,}", len(bills) - 1 == _TENANTS),
        ),
        {"each_kib": each_kib, "first": first.seconds, "second": second.seconds},
    )


def _fetch(tenant: str) -> Mapping[str, Any]:
    return {
        "AccessKeyId": tenant,
        "SecretAccessKey": "secret",
        "SessionToken": Random(tenant).randbytes(_TOKEN_BYTES // 2).hex(),
        "Expiration": datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1),
    }


def _begin(saver: DynamoDBSaver, credentials: TenantCredentials, tenant: str, thread: str) -> None:
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"message": Random(tenant).randbytes(1000)},
        "channel_versions": {"message": 1},
    }
    config: Any = {"configurable": {"thread_id": f"{tenant}/{thread}", "checkpoint_ns": ""}}
    with credentials.tenant(tenant):
        stored = saver.put(config, cast("Any", checkpoint), {}, {"message": 1})
        saver.get_tuple(stored)
