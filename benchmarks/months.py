"""What three example workloads cost a month: DynamoDB by the capacity that was measured, Postgres by its server.

DynamoDB's prices are those of `_format/pricing.py`. A Postgres server is priced as Amazon RDS: the smallest instance
of a class that AWS does not call one for development and tests (its guide says so of the T classes, in "DB instance
class types"), with a standby in another zone, as AWS's template for production has one. Whether the instance is large
enough was not measured: this is the least that a server costs. Prices are those of "Amazon RDS for PostgreSQL
pricing" for us-east-1 on demand, as of 2025; they change, and differ by region.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.dollars import GB_BYTES, request_dollars, stored_dollars
from benchmarks.stored import Stored

# Of db.m6g.large, Multi-AZ.
RDS_HOUR_DOLLARS = 0.318
# General purpose SSD (gp3), Multi-AZ.
RDS_GB_MONTH_DOLLARS = 0.23
# What RDS allots at least.
RDS_GB_MIN = 20
MONTH_DAYS = 30
MONTH_HOURS = 730


@dataclass(frozen=True)
class Example:
    """A workload: so many conversations of so many turns a month, each kept for so many days."""

    name: str
    conversations: int
    turns: int
    kept_days: int

    @property
    def title(self) -> str:
        """What the table calls it."""
        return (
            f"{self.name}: {self.conversations:,} conversations of {self.turns} turns a month,"
            f" kept for {self.kept_days} days"
        )

    def kept(self, each: Stored) -> Stored:
        """What is stored at any time, of conversations that take up so much each."""
        count = self.conversations * self.kept_days / MONTH_DAYS
        return Stored(int(count * each.items), int(count * each.bytes))


EXAMPLES = (
    Example("an internal assistant", 2_000, 20, 90),
    Example("a support desk", 10_000_000, 3, 7),
    Example("long-running agents", 20_000, 60, 30),
)


@dataclass(frozen=True)
class Usage:
    """What one conversation has taken after so many turns."""

    write_units: float
    read_units: float
    stored: Stored


def dynamodb_dollars(example: Example, usage: Mapping[int, Usage]) -> float:
    """Requests and storage, on demand; expiry deletes for nothing."""
    one = usage[example.turns]
    kept = example.kept(one.stored)
    requests = request_dollars(one.write_units, one.read_units)
    return example.conversations * requests + stored_dollars(kept.bytes, kept.items)


def postgres_dollars(example: Example, usage: Mapping[int, Usage]) -> float:
    """The server, and its disk as soon as it holds more than the least."""
    return MONTH_HOURS * RDS_HOUR_DOLLARS + RDS_GB_MONTH_DOLLARS * max(RDS_GB_MIN, _kept_gb(example, usage))


def month_cell(backend: str, example: Example, usage: Mapping[int, Usage]) -> str:
    """Say what an example costs with a backend, or what it takes of the machine that the agent runs on."""
    if backend == "Postgres":
        return _shown(postgres_dollars(example, usage))
    if backend in {"memory", "SQLite"}:
        kind = "memory" if backend == "memory" else "disk"
        return f"{_kept_gb(example, usage):,.1f} GB of its machine's {kind}"
    return _shown(dynamodb_dollars(example, usage))


def _shown(dollars: float) -> str:
    return f"${dollars:,.0f}" if dollars >= 10 else f"${dollars:,.2f}"


def _kept_gb(example: Example, usage: Mapping[int, Usage]) -> float:
    return example.kept(usage[example.turns].stored).bytes / GB_BYTES
