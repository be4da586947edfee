"""The commands, in the order in which `--help` lists them. A command is loaded when it runs.

Loading a command takes half a second, most of it for the saver. So a list of commands has their summaries from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from langgraph.checkpoint.dynamodb.cli.outcome import interruptible


@dataclass(frozen=True)
class Command:
    """A command that is not loaded yet."""

    function: str
    """The module in this package, and the function in it."""
    summary: str
    """The first line of the function's docstring."""

    def load(self) -> Any:
        """Load the command. Return it as Typer makes it of the function."""
        module_name, _, function_name = self.function.partition(":")
        with interruptible():
            command = import_module(f"{__package__}.command").command
            module = import_module(f"{__package__}.{module_name}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(command(getattr(module, function_name)))
        return get_command(app)


class Listed(TyperCommand):
    """A command in a list of commands. Its callback loads the command that runs instead."""

    def loaded(self) -> Any:
        """Return the command that runs."""
        load: Any = self.callback
        return load()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments as those of the loaded command, which the context then runs."""
        return self.loaded().make_context(info_name, args, parent, **extra)


COMMANDS = {
    "doctor": Command("doctor:doctor", "Check the connection, the rights, the table and the clock."),
    "threads": Command("threads:threads", "List threads: size, last step, waiting or not, expiry."),
    "show": Command("show:show", "Show a checkpoint: state, pending writes, interrupts."),
    "history": Command("show:history", "List a thread's checkpoints, the newest first."),
    "verify": Command("verify:verify", "Check everything that threads have stored."),
    "view": Command("view:view", "Show threads on a page in the browser, step by step."),
    "setup": Command("setup:setup", "Create the table for development, or check it."),
    "directory": Command("directory:directory", "Enter existing threads in the directory that lists them."),
    "export": Command("files:export", "Write a thread to a file of JSON lines."),
    "import": Command("files:import_", "Store a thread that was exported, and compare it with the file."),
    "copy": Command("copy:copy", "Copy a thread to another id, or from another table."),
    "prune": Command("prune:prune", "Remove old checkpoints from threads."),
    "delete": Command("delete:delete", "Delete threads, or what a person has stored."),
    "gateway": Command("gateway:gateway", "Serve agents that have no access to the table."),
    "migrate": Command("migrate:migrate", "Move threads from another saver into the table, or back."),
}

MEMORIES = {
    "list": Command("memories:list_", "List namespaces that have memories."),
    "get": Command("memories:get", "Show a memory with its times and its revision."),
    "search": Command("memories:search", "List memories under a namespace, newest first or most similar."),
    "delete": Command("memories:delete", "Delete a memory, or all under a namespace."),
    "export": Command("memories:export", "Write memories to a file of JSON lines, with their times."),
    "import": Command("memories:import_", "Store memories of a file, or of another store."),
}
"""The commands of `memories`."""
