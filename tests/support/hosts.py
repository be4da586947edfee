"""What an agent runs under beside `asyncio.run`: anyio, uvloop, nest_asyncio, Starlette's TestClient, Jupyter.

Each runs a coroutine that makes every kind of call on some savers and plays the examples, in a process of its own.
`examples/demo*.py` and the agents in `infra/` are left out: they are, or start, processes that decide themselves what
they run under, and `tests/deployed` runs them. Three examples make their own saver, and are played with that one only.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROJECT_FOLDER = Path(__file__).parents[2]

_MAIN = """
import asyncio, runpy, sys
from examples import async_quickstart, conversation, many_users, progress, remote_agent, workflow
from langgraph.checkpoint.dynamodb import create_checkpointer
from tests.support.operations import aask_all, ask_all

# Configuration files, each with its saver's table, or with the address of its gateway.
PLACES = list(zip(sys.argv[1::2], sys.argv[2::2]))
workflow.STEP_SECONDS = remote_agent.STEP_SECONDS = progress.PAGE_SECONDS = 0

def act(file, name):
    with create_checkpointer(file) as saver:
        ask_all("sync", saver, f"thread-{name}")

def play(file, where, name):
    conversation.main(file, f"user-{name}", "Hello")
    workflow.main(file, f"order-{name}")
    progress.main(file, "run", f"report-{name}")
    progress.main(file, "watch", f"report-{name}")
    if where.startswith("http"):
        remote_agent.main(where, "start", f"trip-{name}")
        remote_agent.main(where, "yes", f"trip-{name}")
    else:
        runpy.run_module("examples.sync_quickstart")["saver"].close()

async def main():
    for number, (file, where) in enumerate(PLACES):
        with create_checkpointer(file) as saver:
            await aask_all(saver, f"thread-{number}-1")
            await saver.aclose()
        await many_users.main(file, "3")
        if not where.startswith("http"):
            await async_quickstart.main()
        # Blocking calls in a thread that has the context of the event loop, and in its own.
        await asyncio.to_thread(act, file, f"{number}-2")
        act(file, f"{number}-3")
        await asyncio.to_thread(play, file, where, number)
    print("played")
"""

_CELLS = """
def cells(*cells):
    from jupyter_client.manager import start_new_kernel
    manager, client = start_new_kernel()
    try:
        for cell in (f"import sys; sys.argv = {sys.argv}", MAIN, *cells):
            reply = client.execute_interactive(cell, timeout=200)
            assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
"""

HOSTS = {
    "anyio": "import anyio; anyio.run(main)",
    "uvloop": "import uvloop; uvloop.run(main())",
    "nest_asyncio": """
import nest_asyncio
nest_asyncio.apply()
async def nested():
    asyncio.run(main())
loop = asyncio.get_event_loop()
loop.run_until_complete(nested())
loop.close()
""",
    "TestClient": """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

async def endpoint(request):
    await main()
    return PlainTextResponse("answered")

assert TestClient(Starlette(routes=[Route("/", endpoint)])).get("/").text == "answered"
""",
    "Jupyter": "cells('await main()')",
    "nest_asyncio in Jupyter": "cells('import nest_asyncio; nest_asyncio.apply()', 'asyncio.run(main())')",
}
# ipykernel says that its connection on this machine is not encrypted.
_OF_JUPYTER = "[IPKernelApp] WARNING | Kernel is running over TCP without encryption."


def played(host: str, places: Mapping[Path, str], environment: Mapping[str, str]) -> tuple[list[str], str]:
    """Play under a host with what configuration files make; return the lines of its output, and its errors.

    Args:
        host: One of `HOSTS`.
        places: The configurations of savers, each with its table, or with the address of its gateway.
        environment: That of the process.
    """
    program = f"MAIN = {_MAIN!r}\n{_MAIN}{_CELLS}{HOSTS[host]}"
    arguments = [word for file, where in places.items() for word in (str(file), where)]
    done = subprocess.run(  # noqa: S603  # This interpreter, with a program of this file.
        [*(sys.executable, "-W", "always::ResourceWarning", "-c", program), *arguments],
        capture_output=True,
        text=True,
        cwd=PROJECT_FOLDER,
        env={**environment, "PYTHONPATH": str(PROJECT_FOLDER)},
        timeout=300,
    )
    errors = [line for line in done.stderr.splitlines() if not line.startswith(_OF_JUPYTER)]
    return done.stdout.splitlines(), "\n".join(errors)
