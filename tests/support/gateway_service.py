"""The gateway itself, under uvicorn on this machine, in a thread of the process that tests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli.servers import listen
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway


@contextlib.contextmanager
def gateway_service(saver: DynamoDBSaver, **options: Any) -> Iterator[str]:
    """Run a gateway on a saver, which it closes, and give its address.

    Args:
        saver: The saver whose table is served.
        options: Keyword arguments of `create_gateway`; without `authenticate` it asks nobody who they are.
    """
    app = create_gateway(saver, **({"authenticate": anybody_on_this_machine} | options))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    with listen(config) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            # The socket listens already: who comes early waits.
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
