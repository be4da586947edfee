"""What a program loads, in a process of its own."""

import os
import subprocess
import sys


def loaded_by(program: str) -> set[str]:
    """Return the modules that a new process, which has no AWS configuration, has loaded after a program."""
    program += "\nimport sys; print(*sys.modules)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    return set(done.stdout.split())
