"""moto's server, which answers one request after the other: `python -m tools.moto_server PORT`.

moto is not atomic: an update of an item that is not there makes one that has only its key, and then sets the
attributes. A request that runs beside it would read what DynamoDB never shows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class OneByOne(DomainDispatcherApplication):
    """moto's application, behind a lock."""

    _answering = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request when the one before it has been answered."""
        with self._answering:
            answer: Iterable[bytes] = super().__call__(environ, start_response)
            return answer


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        OneByOne(create_backend_app),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
