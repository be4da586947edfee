"""How event loops end, and clients on them: programs after which nothing may be open."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

PROJECT_FOLDER = Path(__file__).parents[2]
FORKED = "a loop that came with a fork"
_ENDS = {
    "a loop that is closed without notice": """
kept = made()
for number in range(1, 3):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(use(kept, number))
    loop.close()
""",
    "a loop that is open until the process ends": """
import atexit
kept = made()
loop = asyncio.new_event_loop()
for number in range(1, 3):
    loop.run_until_complete(use(kept, number))
atexit.register(loop.close)
""",
    "a client that is dropped while its loop runs": """
async def main():
    for number in range(1, 3):
        await use(made(), number)
        gc.collect()
        await asyncio.sleep(0.1)
asyncio.run(main())
""",
    "a client that is dropped and its loop closed": """
loop = asyncio.new_event_loop()
for number in range(1, 3):
    loop.run_until_complete(use(made(), number))
gc.collect()
loop.close()
""",
    "a client that is dropped by another thread": """
async def main():
    for number in range(1, 3):
        kept = [made()]
        await use(kept[0], number)
        def drop():
            kept.clear()
            gc.collect()
        await asyncio.to_thread(drop)
asyncio.run(main())
""",
    "a client that is dropped after its loop": """
kept = made()
for number in range(1, 3):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(use(kept, number))
    loop.close()
    del loop
    gc.collect()
del kept
gc.collect()
""",
    FORKED: """
kept = made()
loop = asyncio.new_event_loop()
loop.run_until_complete(use(kept, 1))
child = os.fork()
if not child:
    gc.collect()
    sys.exit()
os.waitpid(child, 0)
loop.run_until_complete(use(kept, 2))
loop.close()
""",
}


def every_end(*left_out: str) -> pytest.MarkDecorator:
    """Let a test have the name of each program but some; all but one are a search."""
    quick = "a client that is dropped while its loop runs"
    names = [each for each in _ENDS if each not in left_out]
    return pytest.mark.parametrize(
        "end", [each if each == quick else pytest.param(each, marks=pytest.mark.search) for each in names]
    )


def check_end(use: str, end: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a program whose client is used twice, and see that it is told of nothing that was left open.

    Args:
        use: Defines `made()`, which makes a client, and `use(client, number)`, which prints the number.
        end: The name of the program.
        arguments: What the program is called with.
        environment: Its environment variables; by default those of this process.
    """
    done = subprocess.run(  # noqa: S603  # This interpreter, with a program of this file.
        [sys.executable, "-W", "always::ResourceWarning", "-c", use + _ENDS[end], *arguments],
        capture_output=True,
        text=True,
        cwd=PROJECT_FOLDER,
        env=environment,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (["1", "2"], "")
