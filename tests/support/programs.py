"""Programs that tests run to their end."""

import subprocess
from pathlib import Path
from typing import Any


def ran(*command: str | Path, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, which has to end with this status; give what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # noqa: S603  # Ours.
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    return done
