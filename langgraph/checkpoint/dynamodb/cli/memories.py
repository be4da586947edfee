"""`memories`: the memories of the store, as a person or a script needs them.

A namespace is written as its labels with slashes between them, so any label can be written.
"""

import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import unquote

import typer
from langgraph.store.base import InvalidNamespaceError, Item, SearchOp, validate_op_namespace

from langgraph.store.dynamodb import batch, partitions

from .._operations.arguments import COUNT_MAX
from ..migrate import ENDPOINTS, MovedMemories, move_memories, open_memories, stores
from . import CommandError, Exit, files
from .context import CommandContext
from .output import brief, counted, moment

HELP = "Labels with slashes between them, such as users/ada. Write a slash in a label as %2F, and % as %25"
Labels: TypeAlias = Annotated[str, typer.Argument(metavar="NAMESPACE", help=f"{HELP}.")]
Prefix: TypeAlias = Annotated[
    str, typer.Argument(metavar="[NAMESPACE]", help=f"{HELP}; without it, all.", show_default=False)
]
# What separates labels, begins an escape, or is a character that a terminal obeys.
_ESCAPED = re.compile("[\x00-\x1f%/\x7f]")
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_FROM = "LANGGRAPH_MIGRATE_FROM"
Limit = Annotated[int, typer.Option(min=1, max=COUNT_MAX, metavar="N", help="How many to list at most.")]


def parse_labels(text: str) -> tuple[str, ...]:
    """Parse a namespace; an empty text is the one of no labels.

    Raises:
        CommandError: LangGraph refuses the namespace, or a percent sign begins no escape.
    """
    if not text:
        return ()
    try:
        if _NO_ESCAPE.search(text):
            raise ValueError("a % begins two hexadecimal digits; write % as %25")
        labels = tuple(unquote(each, errors="strict") for each in text.split("/"))
        validate_op_namespace(SearchOp(labels))
    except (InvalidNamespaceError, ValueError) as error:
        raise CommandError(Exit.USAGE, f"the namespace {text!r} cannot be used: {error}") from error
    return labels


def one_namespace(text: str) -> tuple[str, ...]:
    """Parse a namespace of at least one label.

    Raises:
        CommandError: There is none, or it cannot be used.
    """
    labels = parse_labels(text)
    if not labels:
        raise CommandError(Exit.USAGE, "the namespace is empty; give its labels, such as users/ada")
    return labels


def labels_text(labels: tuple[str, ...]) -> str:
    """Return a namespace as `parse_labels` reads it."""
    return "/".join(_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", each) for each in labels)


def list_(context: CommandContext, prefix: Prefix = "", *, limit: Limit = 50) -> None:
    """List namespaces that have memories."""
    labels = parse_labels(prefix)
    found = context.store.list_namespaces(prefix=labels or None, limit=limit + 1)
    if context.output.as_json:
        context.output.json(found[:limit])
    else:
        for each in found[:limit]:
            context.output.text(labels_text(each))
    _say_if_more(context, len(found), limit, "namespace")


def get(context: CommandContext, namespace: Labels, name: str) -> None:
    """Show a memory with its times and its revision.

    Options:
        name KEY: The key of the memory.
    """
    found = _found(context, one_namespace(namespace), name)
    if context.output.as_json:
        context.output.json(_record(found))
        return
    for field, value in _record(found).items():
        if field not in ("namespace", "key", "value"):
            context.output.field(field.replace("_", " "), str(value))
    context.output.field("value", json.dumps(found.value, ensure_ascii=False, indent=2))


def search(
    context: CommandContext, prefix: Prefix = "", *, query: str | None = None, limit: Limit = 50
) -> None:
    """List memories under a namespace, newest first or most similar.

    Options:
        query TEXT: Find memories that are similar to a text; the store needs an index.
    """
    labels = parse_labels(prefix)
    if query is not None and not context.store_embeds:
        msg = "--query needs a store that embeds texts; give --config with an index under `store:`"
        raise CommandError(Exit.CONFIGURATION, msg)
    store = context.store if query is None else context.embedding_store
    found = store.search(labels, query=query, limit=limit + 1, refresh_ttl=False)
    shown = found[:limit]
    rows = [
        (labels_text(each.namespace), each.key, moment(each.updated_at), brief(each.value, 100))
        for each in shown
    ]
    context.output.table(list(map(_record, shown)), ("namespace", "key", "updated", "value"), rows)
    _say_if_more(context, len(found), limit, "memory")


def delete(
    context: CommandContext, namespace: Labels, name: str | None = None, *, all_: bool = False
) -> None:
    """Delete a memory, or all under a namespace.

    Only a backup or point-in-time recovery can bring them back. If --all ends with an error, run it again
    to continue.

    Options:
        name [KEY]: The key of the memory.
        all_: Delete every memory under the namespace, instead of one.
    """
    labels = one_namespace(namespace)
    if (name is None) != all_:
        raise CommandError(
            Exit.USAGE, "give the key of a memory, or --all for every memory under the namespace"
        )
    if name is not None:
        _found(context, labels, name)
        what, count = f"memory {name!r} of {labels_text(labels)}", 1
    else:
        count = count_memories(context, labels)
        what = f"{counted(count, 'memory')} under {labels_text(labels)}"
    context.confirm(f"Delete {what} from table {_table(context)}?")
    if name is not None and not context.dry_run:
        context.store.delete(labels, name)
    elif not context.dry_run:
        count = context.store.delete_namespace(labels)
        what = f"{counted(count, 'memory')} under {labels_text(labels)}"
    verb = "would delete" if context.dry_run else "deleted"
    context.output.result({"namespace": labels, verb.replace(" ", "_"): count}, f"{verb}: {what}")


def export(context: CommandContext, prefix: Labels, file: files.Written = files.PIPE) -> None:
    """Write memories to a file of JSON lines, with their times.

    An empty NAMESPACE, '', stands for all memories. The file is not encrypted, even if the memories are.
    """
    labels = parse_labels(prefix)
    with files.written_file(context, file) as stream:
        count = stores.write_memories(context.store.export_items(labels), stream)
    document = {"namespace": labels, "memories": count}
    files.say_written(context, file, document, counted(count, "memory"))


def import_(context: CommandContext, file: Path | None = None, *, from_: str | None = None) -> None:
    """Store memories of a file, or of another store.

    They keep their times, and their ttls if the source shows them. The command checks a whole file before it stores
    anything, and only reads another store. It reads each memory back and compares it. It skips memories that the table
    has already, or has newer, so you can repeat the command. If the store has an index, it embeds texts again.

    Options:
        file [FILE]: An exported file; - is standard input.
        from_ PLACE: Another store, instead of a file; `langgraph-dynamodb docs migrating` lists the places. Pass a
            password in the environment, as LANGGRAPH_MIGRATE_FROM.
    """
    if file is None:
        from_ = from_ or os.environ.get(_FROM)
    if (file is None) == (from_ is None):
        raise CommandError(Exit.USAGE, f"give a file, or --from with another store\n{ENDPOINTS}")
    store = context.embedding_store
    with ExitStack() as stack:
        if file is None:
            records = stack.enter_context(open_memories(str(from_)))
        else:
            stream = stack.enter_context(files.readable_file(file))
            for record in stores.read_memories(stream):
                batch.imported(record, None)
            records = stores.read_memories(stream)
        if context.dry_run:
            count = sum(1 for _ in records)
            text = f"would store: {counted(count, 'memory')}"
            context.output.result({"would_store": count}, text)
            return
        what = "this place" if file is None else str(file)
        context.confirm(f"Store the memories of {what} in table {_table(context)}?")
        with context.output.progress("storing memories", None) as advance:
            moved = move_memories(records, store, advance)
    _say_what_was_moved(context, moved)


def _say_what_was_moved(context: CommandContext, moved: MovedMemories) -> None:
    counts = {name: value for name, value in vars(moved).items() if name != "failed"}
    if context.output.as_json:
        failed = [
            {"namespace": space, "key": name, "problem": why} for (space, name), why in moved.failed.items()
        ]
        context.output.json({**counts, "failed": failed})
    else:
        context.output.field("memories", ", ".join(f"{value:,} {name}" for name, value in counts.items()))
        for (space, name), why in moved.failed.items():
            context.output.field(f"{labels_text(space)} {name}", why)
    if moved.failed:
        failed_count = counted(len(moved.failed), "memory")
        raise CommandError(Exit.PROBLEMS, f"{failed_count} could not be stored; the reasons are above")


def _found(context: CommandContext, labels: tuple[str, ...], name: str) -> Item:
    found = context.store.get(labels, name, refresh_ttl=False)
    if found is None:
        msg = f"there is no memory {name!r} in {labels_text(labels)}; `memories search` lists them"
        raise CommandError(Exit.NOT_FOUND, msg)
    return found


def _record(item: Item) -> dict[str, Any]:
    # LangGraph's type has no revision; those that the store returns do.
    return {**item.dict(), "revision": str(getattr(item, "revision", ""))}


def count_memories(context: CommandContext, labels: tuple[str, ...]) -> int:
    """Count the memories under a namespace. It reads them, page by page, and opens none."""
    return context.store.runner.run(partitions.count_memories(context.store.storage, labels))


def _table(context: CommandContext) -> str:
    return context.store.storage.table.name


def _say_if_more(context: CommandContext, found: int, limit: int, noun: str) -> None:
    if found > limit:
        context.output.note(f"Listed: {counted(limit, noun)}, and there are more; --limit lists more.")
