"""The life cycle of an object that owns a transport: savers, the store and the cache close it in the same ways."""

from __future__ import annotations

import logging

from typing_extensions import Self

from .drivers import Runner, Transport
from .events import Observer
from .failures import error_code
from .steps import Call, Op

logger = logging.getLogger(__name__)


class TransportOwner:
    """Runs operations over one transport, and closes it. As a context manager it closes it at the end."""

    transport: Transport
    runner: Runner
    """The runner of the object's operations; public inside the package."""

    def _own(self, transport: Transport, observer: Observer | None = None) -> None:
        """Take the transport, and the observer of operations if there is one. Copies of the object share both."""
        self.transport = transport
        self.runner = Runner(transport, observer)

    def warm_up(self) -> None:
        """Load what the first blocking call needs, resolve credentials and connect, by one cheap request.

        Call it where nobody waits: at a service's start, or at module level in a Lambda function. Its request is sent
        once. A failure is only logged, since the first call raises what is wrong.
        """
        self.runner.run(warm_up(self._first_request()))

    async def awarm_up(self) -> None:
        """Load what the first async call needs, resolve credentials and connect, by one cheap request.

        Await it where nobody waits, on the event loop of the calls: connections belong to a loop. Its request is sent
        once. A failure is only logged, since the first call raises what is wrong.
        """
        await self.runner.arun(warm_up(self._first_request()))

    def _first_request(self) -> Call:
        """Return the request of `warm_up`. A gateway says what it is, which takes no request to its table."""
        return Call("about", {}, is_sent_once=True)

    def close(self) -> None:
        """Close the blocking client, unless it was given. A later call makes a new one."""
        self.transport.close()

    async def aclose(self) -> None:
        """Close the client of the running event loop, and the blocking client."""
        await self.transport.aclose()
        self.transport.close()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the clients."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the clients on this event loop."""
        await self.aclose()


def warm_up(request: Call) -> Op[None]:
    """Send a request, once. Any answer will do, and a failure is only logged: the first call raises what is wrong."""
    [outcome] = yield (request,)
    if isinstance(outcome, Exception) and not error_code(outcome):
        logger.warning("warm_up got no answer, so the first call takes longer: %s", outcome)
