"""The access log and the metrics: ids, a line for each request, and a problem body for errors nobody else handled.

It is the outermost part of the application, so no error gets past it. No line has a body, a thread's id or the message
of an unforeseen error. With a key, a line has digests of the threads' ids, and the ids of AWS's requests. The metrics
are in Prometheus's format, by endpoint, class of error and tenant.
"""

import hashlib
import hmac
import logging
import re
import time
import traceback
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import anyio
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .._format.wire import REQUEST_ID_HEADER
from ..observe.cloudwatch import BoundedTenants
from . import bodies, problems

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "langgraph_dynamodb_gateway"
# The upper bounds of the histogram's buckets.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass
class RequestRecord:
    """The facts about one request, for the log and the metrics. A handler may set its error."""

    request_id: str
    endpoint: str
    began: float = field(default_factory=time.perf_counter)
    status: int | None = None
    error: str | None = None
    received_bytes: int = 0
    sent_bytes: int = 0
    stored_bytes: int = 0
    """The bytes of the items that it put into the table."""
    threads: set[str] = field(default_factory=set)
    """The ids of the threads that it named or reached. It may share a read that another request has begun."""
    aws_request_ids: list[str] = field(default_factory=list)
    """The ids by which AWS knows its requests to the table."""

    def audit(self, key: bytes) -> dict[str, list[str]]:
        """Return the audit trail: which threads it reached, and which requests to AWS it made.

        The access log knows the principal, and CloudTrail knows the keys of items but only the gateway's role. The ids
        of AWS's requests join the two. A thread is named by a keyed digest, so that who reads the log learns no id from
        it, and who has the key can look for one. docs/gateway.md, "Who read a thread", has the commands.
        """
        digests = (hmac.new(key, each.encode(), hashlib.sha256).hexdigest() for each in self.threads)
        return {"threads": sorted(digests), "aws_request_ids": self.aws_request_ids}


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        """Start at zero."""
        own = self._registry = CollectorRegistry()

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"{_PREFIX}_{name}", says, labels, registry=own)

        self._requests = counter("requests", "Requests answered.", "endpoint", "status")
        self._errors = counter("errors", "Errors, by class.", "endpoint", "error")
        self._received = counter("received_bytes", "Bytes of bodies.", "endpoint")
        self._sent = counter("sent_bytes", "Bytes of responses.", "endpoint")
        self._of_tenants = counter("tenant_requests", "Requests answered, by tenant.", "tenant", "status")
        self._times = counter("tenant_seconds", "Seconds that requests took, by tenant.", "tenant")
        self._stored = counter("tenant_stored_bytes", "Bytes of items put, by tenant.", "tenant")
        self._in_flight = Gauge(
            f"{_PREFIX}_in_flight", "Requests under way, or waiting.", ("endpoint",), registry=own
        )
        self._waiting = Gauge(
            f"{_PREFIX}_waiting", "Requests that wait for their turn.", ("tenant",), registry=own
        )
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "Seconds that requests took.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=own,
        )
        self._tenants = BoundedTenants()

    def begin(self, endpoint: str) -> None:
        """Count a request that has come."""
        self._in_flight.labels(endpoint).inc()

    def end(self, record: RequestRecord, status: int, seconds: float, tenant: str | None) -> None:
        """Count a request that was answered, or given up."""
        endpoint, label = record.endpoint, self._tenants.label(tenant)
        self._of_tenants.labels(label, status).inc()
        self._times.labels(label).inc(seconds)
        self._stored.labels(label).inc(record.stored_bytes)
        self._in_flight.labels(endpoint).dec()
        self._requests.labels(endpoint, status).inc()
        if record.error is not None:
            self._errors.labels(endpoint, record.error).inc()
        self._received.labels(endpoint).inc(record.received_bytes)
        self._sent.labels(endpoint).inc(record.sent_bytes)
        self._seconds.labels(endpoint).observe(seconds)

    def text(self, waiting: Mapping[str | None, int]) -> str:
        """Return all metrics in Prometheus format, with how many requests of each tenant wait for their turn."""
        self._waiting.clear()
        for tenant, count in waiting.items():
            self._waiting.labels(self._tenants.label(tenant)).inc(count)
        return generate_latest(self._registry).decode()


access = logging.getLogger(f"{__name__}.access")
logger = logging.getLogger(__name__)

# Ids that are safe in a log and in a header. Others are replaced.
_HARMLESS = re.compile(r"[A-Za-z0-9._-]{1,128}")
_OTHER = "other"
# nginx's status for a client that disconnected before it was answered.
_GONE = 499


@dataclass(frozen=True)
class AccessLog:
    """The middleware around everything else. It writes the access log and counts requests."""

    app: ASGIApp
    metrics: Metrics
    paths: Collection[str]
    """The known paths. Requests for any other path are counted under one name."""
    audit_key: bytes | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and log and count its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        record = self._begin(scope)

        async def noted_receive() -> Message:
            message = await receive()
            record.received_bytes += len(message.get("body", b""))
            return message

        async def noted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = record.request_id
            record.sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._serve(record, scope, noted_receive, noted_send)
        finally:
            self._end(record, scope)

    def _begin(self, scope: Scope) -> RequestRecord:
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        request_id = given if _HARMLESS.fullmatch(given) else uuid.uuid4().hex
        endpoint = scope["path"].lstrip("/") if scope["path"] in self.paths else _OTHER
        record = RequestRecord(request_id, endpoint)
        scope.setdefault("state", {})["record"] = record
        self.metrics.begin(endpoint)
        return record

    async def _serve(self, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            record.status = _GONE
        except Exception as error:  # noqa: BLE001 - nothing may get past: a server would log all of it.
            problem = note(record, error)
            # Once a response has begun, it can only be cut off, which the server does with a response that is not
            # complete.
            if record.status is None:
                response = problem_response(record, problem)
                with anyio.move_on_after(bodies.patience_seconds(len(response.body))):
                    await response(scope, receive, send)

    def _end(self, record: RequestRecord, scope: Scope) -> None:
        seconds = time.perf_counter() - record.began
        status = record.status or _GONE
        principal = scope["state"].get("principal")
        tenant = None if principal is None else principal.tenant
        self.metrics.end(record, status, seconds, tenant)
        access.info(
            {
                "request_id": record.request_id,
                "endpoint": record.endpoint,
                "status": status,
                "error": record.error,
                "principal": None if principal is None else principal.name,
                "tenant": tenant,
                "seconds": round(seconds, 6),
                "received_bytes": record.received_bytes,
                "sent_bytes": record.sent_bytes,
                **({} if self.audit_key is None else record.audit(self.audit_key)),
            }
        )


def note(record: RequestRecord, error: Exception) -> problems.ProblemError:
    """Return an error's problem and record it for the log. For unforeseen errors, log where they were raised."""
    problem = problems.problem_of(error)
    record.error = problem.kind.__name__
    if problem.status == 500:
        record.error = type(error).__name__
        where = "".join(traceback.format_tb(error.__traceback__))
        said = f": {error}" if problem.detail is not None else ""
        logger.error("request %s failed with %s%s\n%s", record.request_id, record.error, said, where)
    let_go(error)
    return problem


def let_go(error: BaseException | None) -> None:
    """Clear the frames of an error and of those that it came from.

    A frame that has the error, or its task, is in a cycle with it. So it would keep a refused body, or what was read,
    in memory until a full collection of garbage.
    """
    errors = [error]
    while errors:
        each = errors.pop()
        if each is not None and each.__traceback__ is not None:
            traceback.clear_frames(each.__traceback__)
            each.__traceback__ = None
            errors += [each.__cause__, each.__context__]


def problem_response(record: RequestRecord, problem: problems.ProblemError) -> Response:
    """Return the response for a problem."""
    document = problem.document(record.request_id)
    return JSONResponse(document, problem.status, headers=problem.headers, media_type=problems.MEDIA_TYPE)
