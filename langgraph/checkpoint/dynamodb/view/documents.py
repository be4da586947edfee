"""The contract between the page and its server: the JSON documents, and the requests for them.

Every path below is relative to the page, whose own address contains the token: `http://127.0.0.1:PORT/TOKEN/`.

    GET  api/start                                              -> Start
    GET  api/directory  [owner], [title], [status], [before]    -> Directory     (newest activity first; no scan)
    GET  api/memories   of, [offset]                            -> Memories      (newest first)
    GET  api/threads    run                                     -> Threads       (by the index; no scan)
    GET  api/thread     thread                                  -> Thread
    GET  api/tree       thread, ns, [before], [limit]           -> Tree
    GET  api/state      thread, ns, checkpoint                  -> State
    GET  api/part       thread, ns, checkpoint, path, [start]   -> Node          (more of a value that was cut)
    GET  api/changes    thread, ns, checkpoint                  -> Changes       (against the parent)
    GET  api/search     thread, text, [cursor]                  -> Search
    GET  api/pending    thread, ns, checkpoint                  -> Pending

`thread`, `ns`, `checkpoint`, `run`, `owner`, `title` and `text` are plain texts; `ns` of the root is empty. `of` is an
owner, or labels of a namespace with slashes between them.
`path` is a JSON list, such as `["values", "messages", 3, "content"]`. A request that fails returns a `ProblemDocument`,
with its status.

A path in a checkpoint begins with `"values"` and a channel, `"writes"` and the number of a pending write in
`Pending.writes`, or `"metadata"`. After that, a number is a place in a list, and a text the key of an entry. In a
message, `"content"` leads to its content, `"tool_calls"`, a number and `"args"` to the arguments of a call, and any
other key to that entry.

`nodes` describes how values are represented.

Texts may hold anything: HTML, control characters, marks that reverse text, lone surrogates. Numbers are texts,
since JavaScript would round them. No document has a large value whole: `api/part` returns what is left out.
"""

from typing import Literal, TypeAlias

from typing_extensions import TypedDict

from .nodes import Node

Path: TypeAlias = list[str | int]
"""The path of a value; see above."""


class ProblemDocument(TypedDict):
    """An error, as RFC 9457 defines it."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    """The cause, and what to do about it."""


# Threads


class Start(TypedDict):
    """The first document that the page requests."""

    table: str
    thread: str | None
    """The thread that was given to the command."""


class ListedThread(TypedDict):
    """A thread of the directory, with what its newest checkpoint says."""

    thread: str
    owner: str | None
    title: str | None
    last_active: str | None
    """In ISO 8601, UTC."""
    status: str | None
    """idle, waiting for a human or failed. None if the checkpoint cannot be read."""
    step: int | None
    problem: str | None
    """Why the newest checkpoint cannot be read."""


class Directory(TypedDict):
    """A page of the directory: an owner's threads, or all of the last 30 days. Threads outside of it are not listed."""

    threads: list[ListedThread]
    looked_at: int
    """How many threads of the list were looked at, of which `threads` have the title."""
    before: str | None
    """The parameter that requests the next page. None at the end."""


class ThreadsDocument(TypedDict):
    """Threads by their ids."""

    threads: list[str]


class MemoryDocument(TypedDict):
    """A memory."""

    namespace: list[str]
    key: str
    updated_at: str
    """In ISO 8601, UTC."""
    value: Node


class MemoriesDocument(TypedDict):
    """A page of memories."""

    memories: list[MemoryDocument]
    offset: int | None
    """The parameter that requests the next page. None at the end."""


class Lane(TypedDict):
    """A namespace: the root's, or a subgraph's."""

    ns: str
    name: str
    """The node whose subgraph it is; empty for the root."""
    parent: str | None
    """The namespace around it; None for the root."""
    task_id: str | None
    """The task of a checkpoint of `parent` whose subgraph this is. None if the subgraph keeps state over all calls."""


class ThreadDocument(TypedDict):
    """A thread, before anything of its checkpoints is read."""

    owner: Node | None
    title: Node | None
    """Owner and title as the directory has them, or None."""
    problem: str | None
    """Why owner and title cannot be read."""
    lanes: list[Lane]
    """The root's namespace first, then the others by name."""


# The tree


class TaskDocument(TypedDict):
    """A task of a checkpoint that has stored something."""

    task_id: str
    node: str | None
    """The node that ran. None if it cannot be told from what is stored."""
    sent: Node | None
    """The argument of the `Send` that created it."""
    asked: list[Node]
    """The task's questions to a human."""
    answered: list[Node]
    """The answers to them."""
    error: Node | None
    """The task's error."""
    finished: bool
    """Whether it has stored its result. If there is an `error` too, it failed and was tried again."""
    waiting: bool
    """Whether it waits for an answer."""
    writes: list[str]
    """The channels that it wrote to."""


class Row(TypedDict):
    """A checkpoint in the tree."""

    checkpoint: str
    parent: str | None
    stored_at: str | None
    """In ISO 8601, UTC."""
    step: int | None
    source: str | None
    """input, loop, update or fork."""
    run: str | None
    ran: list[str]
    """The nodes that made this checkpoint: those whose results it has and its parent has not."""
    next: list[str]
    """The nodes that run next, as far as can be told from what is stored."""
    changed: list[str]
    """The channels whose version differs from the parent's. All of them if the parent is not there."""
    tasks: list[TaskDocument]
    expires_at: str | None
    items: int
    bytes: int
    """The size of its own items, without segments."""
    problem: str | None
    """Why the checkpoint, or a part of it, cannot be read: damage, or another key."""


class Tree(TypedDict):
    """Some checkpoints of one namespace, newest first."""

    newest: str | None
    """The newest checkpoint of the namespace."""
    rows: list[Row]
    before: str | None
    """The parameter that requests older ones. None if there are none. A parent may be among them."""
    problem: str | None
    """Why older checkpoints cannot be read."""


# One checkpoint


class Channel(TypedDict):
    """A channel's value."""

    name: str
    changed: bool
    """Whether its version differs from the parent's."""
    segments: int
    """The number of its segments."""
    node: Node | None
    problem: str | None


class StateDocument(TypedDict):
    """The contents of a checkpoint."""

    channels: list[Channel]
    """Sorted by name. Those that begin with `__` or `branch:` are LangGraph's own."""
    metadata: Node


class ChangeDocument(TypedDict):
    """A part that differs between a checkpoint and its parent."""

    kind: Literal["added", "changed", "gone"]
    before_path: Path | None
    """Its path in the parent. None if it was not there."""
    path: Path | None
    """Its path in this checkpoint. None if it is gone."""
    before: Node | None
    after: Node | None


class ChannelChanges(TypedDict):
    """The changes in a channel."""

    channel: str
    kind: Literal["added", "changed", "gone"]
    before_bytes: int | None
    after_bytes: int | None
    changes: list[ChangeDocument]
    """Each as deep as it can be located: a field of a message, an entry of an object."""
    more: int
    """How many further changes the document leaves out."""
    problem: str | None


class Changes(TypedDict):
    """The changes of a checkpoint against its parent."""

    parent: str | None
    """The parent. None if it is not there; then everything is added."""
    channels: list[ChannelChanges]
    """The channels that changed, sorted by name."""
    unchanged: list[str]


class Hit(TypedDict):
    """A place where a text appeared: its checkpoint has the text there, and the parent has not."""

    ns: str
    checkpoint: str
    step: int | None
    stored_at: str | None
    path: Path
    node: str | None
    """The node that wrote it, if it is in a pending write."""
    excerpt: str
    """The text with some context."""
    at: int
    """Where the text begins in the excerpt, in UTF-16 units, as JavaScript counts."""


class SearchDocument(TypedDict):
    """The places where a text appeared, earliest first. A long history takes several requests."""

    hits: list[Hit]
    """The hits of this request, earliest first. The first of all is where the text first appeared."""
    cursor: int | None
    """The cursor of the next request. None at the end."""
    looked_at: int
    of: int


class WriteDocument(TypedDict):
    """A pending write."""

    task_id: str
    node: str | None
    channel: str
    """The channels `__interrupt__`, `__resume__` and `__error__` hold questions, answers and errors."""
    value: Node | None
    problem: str | None


class Pending(TypedDict):
    """The stored writes of a checkpoint's tasks, and the nodes that run next."""

    tasks: list[TaskDocument]
    next: list[str]
    writes: list[WriteDocument]
    problem: str | None
