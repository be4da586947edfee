"""The command line: its options, its commands in the order in which `--help` lists them, and its exit codes.

Loading a command takes half a second, most of it for the saver. So a command is loaded when it runs, and a list of
commands has their summaries from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from . import Exit, interruptible, printed


@dataclass(frozen=True)
class Command:
    """A command that is not loaded yet."""

    function: str
    """The module in this package, and the function in it."""
    summary: str
    """The first line of the function's docstring."""
    options: tuple[str, ...] = ()
    """The shared options that it has, of those that not every command has."""

    def load(self) -> Any:
        """Load the command. Return it as Typer makes it of the function."""
        module_name, _, function_name = self.function.partition(":")
        with interruptible():
            command = import_module(f"{__package__}.command").command
            module = import_module(f"{__package__}.{module_name}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(command(getattr(module, function_name), self.options))
        return get_command(app)


class LazyCommand(TyperCommand):
    """A command in a list of commands. Its callback loads the command that runs instead."""

    def loaded(self) -> Any:
        """Return the command that runs."""
        load: Any = self.callback
        return load()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments as those of the loaded command, which the context then runs."""
        return self.loaded().make_context(info_name, args, parent, **extra)


CHANGES = ("yes", "dry_run")
MANY = ("parallel", *CHANGES)

COMMANDS = {
    "doctor": Command("doctor:doctor", "Check the connection, the rights, the table and the clock."),
    "threads": Command("listing:threads", "List threads: last activity and step, waiting or not."),
    "show": Command("show:show", "Show a checkpoint: state, pending writes, interrupts."),
    "history": Command("show:history", "List a thread's checkpoints, the newest first."),
    "verify": Command("upkeep:verify", "Check everything that threads have stored.", ("parallel", "yes")),
    "view": Command("servers:view", "Show threads on a page in the browser, step by step."),
    "setup": Command("upkeep:setup", "Create the table for development, or check it.", ("yes",)),
    "directory": Command(
        "listing:directory", "Enter existing threads in the directory that lists them.", MANY
    ),
    "export": Command("person:export", "Write a thread, or all threads of an owner, to files.", ("yes",)),
    "import": Command(
        "files:import_", "Store a thread that was exported, and compare it with the file.", CHANGES
    ),
    "copy": Command("transfer:copy", "Copy a thread to another id, or from another table.", CHANGES),
    "prune": Command("upkeep:prune", "Remove old checkpoints from threads.", MANY),
    "delete": Command("person:delete", "Delete threads, or what a person has stored.", MANY),
    "gateway": Command("servers:gateway", "Serve agents that have no access to the table."),
    "migrate": Command("transfer:migrate", "Move threads from another saver into the table, or back.", MANY),
}

MEMORIES = {
    "list": Command("memories:list_", "List namespaces that have memories."),
    "get": Command("memories:get", "Show a memory with its times and its revision."),
    "search": Command("memories:search", "List memories under a namespace, newest first or most similar."),
    "delete": Command("memories:delete", "Delete a memory, or all under a namespace.", CHANGES),
    "export": Command(
        "memories:export", "Write memories to a file of JSON lines, with their times.", ("yes",)
    ),
    "import": Command("memories:import_", "Store memories of a file, or of another store.", CHANGES),
}
"""The commands of `memories`."""

_EXIT_CODES = "\n\n".join(f"{code.value}: {code.meaning}" for code in Exit)

app = typer.Typer(
    name="langgraph-dynamodb",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Inspect and maintain a table of langgraph-dynamodb. As the first word, --version prints the version.",
    epilog=f"Exit codes:\n\n{_EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _list(commands: Mapping[str, Command], group: typer.Typer) -> None:
    """Add commands to a group, which lists them without loading them."""
    for name, each in commands.items():
        group.command(name, cls=LazyCommand, help=each.summary)(each.load)


_memories = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, get, delete and move the memories of a store."
)
_list(COMMANDS, app)
_list(MEMORIES, _memories)
app.add_typer(_memories, name="memories")


def _print(context: typer.Context) -> None:
    """Let `printed` read the arguments, as it does without the extra."""
    printed.main([str(context.info_name), *context.args])


for name, help_ in printed.COMMANDS.items():
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=help_, add_help_option=False, context_settings=as_given)(_print)
