"""The gateway on a table of this machine, for development: `make gateway`.

It asks nobody who they are, and serves this machine only. The engine is that of the environment, which
`python -m tools.engine run` starts around it, so both end together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from socket import socket

import uvicorn

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway
from langgraph.checkpoint.dynamodb.gateway.listening import listen
from tools.server import until_interrupted

TABLE_NAME = "langgraph-checkpoints"
_USE_IT = """\
An agent uses it with these lines:
  from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
  saver = HttpCheckpointSaver("{address}")
  graph = builder.compile(checkpointer=saver)
Ctrl-C ends the gateway, and the engine with it."""


class _Server(uvicorn.Server):
    """Says how it is used once it serves, and hears of Ctrl-C."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        [(host, port)] = [each.getsockname() for each in sockets or ()]
        print(_USE_IT.format(address=f"http://{host}:{port}"), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.gateway", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--port", type=int, default=0, help="the port; 0, the default, takes one that is free"
    )
    port = parser.parse_args(arguments).port
    saver = DynamoDBSaver(TABLE_NAME)
    saver.setup()
    # The application closes the saver when it ends.
    config = uvicorn.Config(
        create_gateway(saver, authenticate=anybody_on_this_machine), port=port, log_level="warning"
    )
    with closing(listen(config)) as listener:
        _Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
