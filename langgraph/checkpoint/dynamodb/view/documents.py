"""What the page is told: the JSON documents, and the requests that they answer. The contract of both sides.

Every path below is relative to the page, whose own address has the token in it: `http://127.0.0.1:PORT/TOKEN/`.

    GET  api/start                                              -> Start
    GET  api/threads    run                                     -> Threads       (by the index; no scan)
    GET  api/extent                                             -> Extent        (what a scan will read and cost)
    POST api/scan       [scan]                                  -> Scanned       (begins a scan, or goes on with it)
    GET  api/thread     thread                                  -> Thread
    GET  api/tree       thread, ns, [before], [limit]           -> Tree
    GET  api/state      thread, ns, checkpoint                  -> State
    GET  api/part       thread, ns, checkpoint, path, [start]   -> Node          (more of a value that was cut)
    GET  api/changes    thread, ns, checkpoint, [against]       -> Changes       (against the parent, or another one)
    GET  api/blame      thread, ns, checkpoint, path, [cursor]  -> Blame
    GET  api/search     thread, text, [cursor]                  -> Search
    GET  api/pending    thread, ns, checkpoint                  -> Pending
    GET  api/cost       thread, ns                              -> Cost

`thread`, `ns`, `checkpoint`, `against`, `run` and `text` are texts as they are; `ns` of the root is empty. `path` is a
JSON list, such as `["values", "messages", 3, "content"]`. Whatever fails is a `Problem`, with the status that it says.

A path begins with `"values"` and a channel, `"writes"` and the number of a pending write in `Pending.writes`, or
`"metadata"`. Behind it a number is a place in a list, and a text the key of an entry. Of a message, `"content"` leads
to its content, `"tool_calls"`, a number and `"args"` to the arguments of a call, and any other key to that entry.

In a file of an export `<script type="application/json" id="export">` holds what `exported` says, and nothing is
requested. How values are told is in `node`.

Texts may hold anything: HTML, control characters, marks that turn text around, lone surrogates. Numbers are texts,
since JavaScript would round them. No document has a large value whole: what it leaves out is asked for by `api/part`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb.view.node import Node

Path: TypeAlias = "list[str | int]"
"""Where a value is; see above."""


class Problem(TypedDict):
    """What went wrong, as RFC 9457 has it."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    """What is wrong, and what to do about it."""


# Threads


class Start(TypedDict):
    """What the page begins with."""

    version: str
    table: str
    thread: str | None
    """The thread that the command was given."""


class Threads(TypedDict):
    """Threads by their ids."""

    threads: list[str]


class Extent(TypedDict):
    """What listing all threads reads. None where the caller may not ask how large the table is."""

    items: int | None
    bytes: int | None
    read_units: float | None
    dollars: float | None
    detail: str
    """The same in words, for who decides."""


class Scanned(TypedDict):
    """What a round of a scan gave."""

    scan: str
    """What to go on by."""
    threads: list[str]
    """Those that no earlier round had."""
    scanned_items: int
    """How many items the scan has looked at, all rounds together."""
    done: bool


class Lane(TypedDict):
    """A namespace: the root's, or a subgraph's."""

    ns: str
    name: str
    """The node whose subgraph it is; empty for the root."""
    parent: str | None
    """The namespace around it; None for the root."""
    task_id: str | None
    """The task of a checkpoint of `parent` whose subgraph this is; None where it keeps its state over all calls."""


class Thread(TypedDict):
    """A thread, before anything of its checkpoints is read."""

    thread: str
    lanes: list[Lane]
    """The root's first, then by their names."""


# The tree


class Task(TypedDict):
    """A task of a checkpoint that has stored something."""

    task_id: str
    node: str | None
    """The node that ran; None where what was stored does not say."""
    asked: list[Node]
    """What it asked a human."""
    answered: list[Node]
    """What it was answered."""
    error: Node | None
    """What it failed with."""
    finished: bool
    """Whether it has stored its result: with `error`, it failed and was tried again."""
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
    """The nodes whose results it holds and its parent does not: those that made it."""
    next: list[str]
    """The nodes that run next, as far as what is stored says so."""
    changed: list[str]
    """The channels with another version than the parent has; all of them where the parent is not there."""
    tasks: list[Task]
    expires_at: str | None
    items: int
    bytes: int
    """Of its own items, without segments."""
    problem: str | None
    """Why it, or a part of it, cannot be read: damage, or another key."""


class Tree(TypedDict):
    """Some checkpoints of one namespace, the newest first."""

    thread: str
    ns: str
    newest: str | None
    """The newest checkpoint of the namespace."""
    rows: list[Row]
    before: str | None
    """What to ask for the older ones with; None where there are none. A parent may be among them."""
    problem: str | None
    """Why older checkpoints cannot be read."""


# One checkpoint


class Channel(TypedDict):
    """A channel's value."""

    name: str
    version: str | None
    changed: bool
    """Whether its version is another one than the parent's."""
    stored_bytes: int
    """How much the serialized value takes up, before compression; 0 of a delta channel, and where it cannot be read."""
    serialized_as: str
    """The serializer's name of the form, such as msgpack."""
    segments: int
    """In how many segments it lies."""
    node: Node | None
    problem: str | None


class State(TypedDict):
    """What a checkpoint holds."""

    thread: str
    ns: str
    checkpoint: str
    channels: list[Channel]
    """By their names. Those that begin with `__` or `branch:` are LangGraph's own."""
    metadata: Node


class Change(TypedDict):
    """Something that is another in one of two checkpoints."""

    kind: Literal["added", "changed", "gone", "moved"]
    before_path: Path | None
    """Where it was, in the other checkpoint; None where it was not."""
    path: Path | None
    """Where it is; None where it is not any more."""
    before: Node | None
    after: Node | None
    """None for what was moved too: it is what it was."""


class ChannelChanges(TypedDict):
    """What changed in a channel."""

    channel: str
    kind: Literal["added", "changed", "gone"]
    before_bytes: int | None
    after_bytes: int | None
    changes: list[Change]
    """Each as deep as it can be told: a field of a message, an entry of an object."""
    more: int
    """How many further changes the document leaves out."""
    problem: str | None


class Changes(TypedDict):
    """What changed between two checkpoints of a namespace."""

    thread: str
    ns: str
    checkpoint: str
    against: str | None
    """The other checkpoint; None where there is none, and then everything is added."""
    channels: list[ChannelChanges]
    """Those that changed, by their names."""
    unchanged: list[str]


class Origin(TypedDict):
    """What made a value so."""

    ns: str
    checkpoint: str
    """The first checkpoint, on the way to the one that was asked for, that has the value as it is."""
    parent: str | None
    path: Path
    """Where the value is in it."""
    step: int | None
    source: str | None
    stored_at: str | None
    tasks: list[Maker]
    """The tasks that wrote to the channel, those that wrote this very value first."""
    before: Node | None
    """What was there in the parent; None where nothing was."""


class Maker(TypedDict):
    """A task that wrote to the channel of a value."""

    task_id: str
    node: str | None
    wrote_it: bool
    """Whether the value, or the text in it, is in what the task wrote. A reducer may have made it of other things."""


class Blame(TypedDict):
    """How far the way back was followed; a long way takes several requests."""

    origin: Origin | None
    """None while it is not found."""
    cursor: str | None
    """What to go on by; None at the end."""
    looked_at: int
    """How many checkpoints, all requests together."""
    of: int
    """At most how many there are."""


class Hit(TypedDict):
    """A place where a text appeared: its checkpoint has it, and the parent of that has not there."""

    ns: str
    checkpoint: str
    step: int | None
    stored_at: str | None
    path: Path
    node: str | None
    """The node that wrote it, where it is in a pending write."""
    excerpt: str
    """The text with a little around it."""
    at: int
    """Where in the excerpt it begins, in UTF-16 units, as JavaScript counts."""


class Search(TypedDict):
    """Where a text appeared, the earliest first; a long history takes several requests."""

    text: str
    hits: list[Hit]
    """Those of this request, the earliest first: the first of all is where the text first appeared."""
    cursor: str | None
    """What to go on by; None at the end."""
    looked_at: int
    of: int


class Write(TypedDict):
    """A pending write."""

    task_id: str
    node: str | None
    channel: str
    """`__interrupt__`, `__resume__` and `__error__` are what was asked, answered, and failed with."""
    value: Node | None
    problem: str | None


class Pending(TypedDict):
    """What the tasks of a checkpoint have stored, and which run next."""

    thread: str
    ns: str
    checkpoint: str
    tasks: list[Task]
    next: list[str]
    writes: list[Write]
    problem: str | None


class Price(TypedDict):
    """What a checkpoint took to store, and what it takes to read. Dollars are on demand in us-east-1."""

    checkpoint: str
    items: int
    """Head and pending writes."""
    bytes: int
    new_segments: int
    """Those that no earlier checkpoint of the namespace names."""
    new_bytes: int
    shared_segments: int
    """Those that its parent names too."""
    shared_bytes: int
    write_units: int
    read_units: float
    write_dollars: float
    read_dollars: float


class Totals(TypedDict):
    """A namespace's items together."""

    items: int
    bytes: int
    segments: int
    segment_bytes: int
    write_units: int
    write_dollars: float
    month_dollars: float
    """What storing them costs for a month."""
    missing_segments: int
    """Named, and not there."""


class Cost(TypedDict):
    """What the checkpoints of a namespace cost, the oldest first. It reads all segments that are not known yet."""

    thread: str
    ns: str
    prices: list[Price]
    totals: Totals
