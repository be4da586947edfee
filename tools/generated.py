"""Writes generated files, or says which of them would change: the command line of the tools that make them."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_or_check(
    command: str,
    description: str,
    difference: str,
    files: Callable[[], Mapping[Path, str]],
    arguments: Sequence[str],
) -> int:
    """Write each file as it should be. With `--check`, write nothing, and name those that differ.

    Args:
        command: The command of the tool.
        description: What it does.
        difference: What is wrong with a file that differs, in words.
        files: Returns each file as it should be.
        arguments: The arguments of the command.

    Returns:
        The exit status: 1 if a file that was checked differs.
    """
    parser = argparse.ArgumentParser(prog=command, description=description)
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args(arguments).check
    changed = {path: text for path, text in files().items() if path.read_text(encoding="utf-8") != text}
    for path, text in changed.items():
        if is_check:
            print(f"{path.relative_to(ROOT)}: {difference}; run `{command}`")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if is_check and changed else 0
