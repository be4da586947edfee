"""The gateway itself, on this machine: in a thread of the process that tests, or as its command."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

import httpx
import uvicorn

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli.servers import listen
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway

READY_SECONDS_MAX = 60


@contextlib.contextmanager
def gateway_process(
    *words: str, env: Mapping[str, str] = os.environ
) -> Iterator[tuple[str, subprocess.Popen[str], IO[str]]]:
    """Run the command until it is ready; give its address, the process, and what it says from then on."""
    command = [sys.executable, "-c", "from langgraph.checkpoint.dynamodb.cli import main; main()", *words]
    environment = {**env, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603
        assert process.stderr is not None
        try:
            serving = re.compile(r"serving table .* at (http\S+)")
            said = next(filter(None, map(serving.match, process.stderr)))
            # On a busy machine the first request makes a client for far longer than `/ready` waits.
            until = time.monotonic() + READY_SECONDS_MAX
            while not httpx.get(f"{said[1]}/ready", timeout=READY_SECONDS_MAX).is_success:
                assert time.monotonic() < until
                time.sleep(0.1)
            yield said[1], process, process.stderr
        finally:
            process.kill()


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
