"""A thread as one file: complete, each value once, and without what is masked."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.view import STATIC
from langgraph.checkpoint.dynamodb.view.bundle import BundleError, bundled, modules
from langgraph.checkpoint.dynamodb.view.export import Exporter, address
from langgraph.checkpoint.dynamodb.view.masks import Masks, parse_rule
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.view.conftest import Asked

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105  # It opens nothing.
MAIL = "ada.lovelace@example.org"


def exported(saver: DynamoDBSaver, thread: str, *, masked: Any = (), left_out: Any = ()) -> Any:
    """An export, as a page reads it."""
    rules = [parse_rule(each, "masked") for each in masked]
    rules += [parse_rule(each, "left out") for each in left_out]
    export = Exporter(Session(saver), Masks(rules), lambda *_: None).export(thread)
    return json.loads(json.dumps(export, allow_nan=False))


def whole(part: Any, shared: list[Any]) -> Any:
    """A document with what it shares with others in its place."""
    if isinstance(part, list):
        return [whole(each, shared) for each in part]
    if not isinstance(part, dict):
        return part
    if "$" in part:
        return whole(shared[part["$"]], shared)
    return {key: whole(each, shared) for key, each in part.items()}


def nodes(part: Any) -> Iterator[Any]:
    """Every node in a document."""
    if isinstance(part, dict):
        if "kind" in part and "bytes" in part:
            yield part
        for each in part.values():
            yield from nodes(each)
    elif isinstance(part, list):
        for each in part:
            yield from nodes(each)


@pytest.mark.engines("dynamodb-local")
def test_the_documents_are_those_of_the_server(saver: DynamoDBSaver, asked: Asked, thread: str) -> None:
    graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    export = exported(saver, thread)
    found = {key: whole(each, export["shared"]) for key, each in export["documents"].items()}
    lanes = asked.get("thread", thread=thread)["lanes"]
    assert found.pop("api/start")["thread"] == thread
    assert found.pop(address("thread", {"thread": thread})) == asked.get("thread", thread=thread)
    for ns in (each["ns"] for each in lanes):
        for name in ("tree", "cost"):
            parameters = {"thread": thread, "ns": ns}
            assert found.pop(address(name, parameters)) == asked.get(name, **parameters)
        for row in asked.rows(thread, ns):
            for name in ("state", "changes", "pending"):
                parameters = {"thread": thread, "ns": ns, "checkpoint": row["checkpoint"]}
                assert found.pop(address(name, parameters)) == asked.get(name, **parameters)
    assert not found
    assert (export["masks"], export["cut_bytes"]) == ([], 1024 * 1024)


@pytest.mark.engines("dynamodb-local")
def test_each_value_is_there_once_and_whole(saver: DynamoDBSaver, thread: str) -> None:
    text = "".join(map(str, range(20_000)))
    talk = Conversation(saver, thread)
    for number in range(20):
        talk.put(
            messages=[
                HumanMessage(text, id="1"),
                *(AIMessage(f"{each}", id=f"a{each}") for each in range(number)),
            ]
        )
    export = exported(saver, thread)
    assert json.dumps(export).count(text) == 1
    assert not any(each.get("cut") for each in nodes(export["shared"]))


@pytest.mark.engines("dynamodb-local")
def test_what_is_over_a_megabyte_is_cut_and_says_so(saver: DynamoDBSaver, thread: str) -> None:
    store(saver, thread_config(thread), "1", {"text": "x" * 1_100_000})
    export = exported(saver, thread)
    [cut] = [each for each in nodes(export["shared"]) if each.get("cut")]
    assert (cut["end"], cut["length"]) == (1024 * 1024, 1_100_000)


@pytest.mark.engines("dynamodb-local")
def test_a_thread_that_is_not_there_is_an_error(saver: DynamoDBSaver) -> None:
    with pytest.raises(CheckpointNotFoundError, match="'nobody' has no checkpoint"):
        exported(saver, "nobody")


@pytest.mark.engines("dynamodb-local")
def test_of_a_damaged_thread_the_rest_is_exported(
    saver: DynamoDBSaver, table: str, client: Any, thread: str
) -> None:
    talk = Conversation(saver, thread)
    damaged = talk.put(count=1)["configurable"]["checkpoint_id"]
    talk.put(count=2)
    client.update_item(
        TableName=table,
        Key={"PK": {"S": f"{thread}#"}, "SK": {"S": f"C#{damaged}#"}},
        UpdateExpression="SET body = :other",
        ExpressionAttributeValues={":other": {"B": b"x"}},
    )
    documents = exported(saver, thread)["documents"]
    at = {"thread": thread, "ns": "", "checkpoint": damaged}
    assert address("state", at) not in documents
    assert documents[address("pending", at)]["problem"]
    assert documents[address("tree", {"thread": thread, "ns": ""})]["rows"][1]["problem"]


# Masks


def secrets(saver: DynamoDBSaver, thread: str) -> None:
    """Store secrets wherever a thread may have some."""
    account = {"mail": MAIL, "key": KEY, f"of {MAIL}": TOKEN, "note": "nothing", "number": 12345678}
    talk = Conversation(saver, thread)
    talk.put(__start__={"account": account, "messages": [HumanMessage(f"I am {MAIL}", id="1", name=MAIL)]})
    said = [
        HumanMessage(f"I am {MAIL}", id="1", name=MAIL),
        AIMessage(f"Take {KEY} or Bearer {TOKEN}.", id=MAIL),
    ]
    config = talk.put(messages=said, account=account, raw=f"in bytes {MAIL} {KEY} {TOKEN}".encode())
    saver.put_writes(config, [("__interrupt__", [f"mail {MAIL}?"]), ("__error__", f"no {KEY}")], MAIL)
    saver.put_writes(config, [("account", account), ("messages", said[0])], "task")
    talk.put(account={**account, "key": f"{KEY}x", "mail": f"new-{MAIL}"})


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("action", ["masked", "left_out"])
def test_no_mail_address_key_or_token_is_in_a_masked_file(
    saver: DynamoDBSaver, thread: str, action: str
) -> None:
    name = f"{thread}-{MAIL}"
    secrets(saver, name)
    clear = json.dumps(exported(saver, name))
    assert all(each in clear for each in (MAIL, KEY, TOKEN))
    export = exported(saver, name, **{action: ["mail", "keys", "tokens"]})
    text = bundled(STATIC, export)
    found = [each for each in (MAIL, KEY, TOKEN) if each in text.replace("%40", "@")]
    assert found == [], [text[max(0, text.find(each) - 300) : text.find(each) + 100] for each in found]
    assert base64.b64encode(f"in bytes {MAIL}".encode())[:16].decode() not in text
    assert "nothing" in text
    told = {each["rule"]: each for each in export["masks"]}
    assert set(told) == {"mail", "keys", "tokens"}
    assert all(each["times"] > 0 for each in told.values())
    assert {each["action"] for each in told.values()} == {action.replace("_", " ")}


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("action", ["masked", "left_out"])
def test_what_keys_lead_to_is_in_no_channel_input_or_write(
    saver: DynamoDBSaver, thread: str, action: str
) -> None:
    secrets(saver, thread)
    rules = {action: ["account.key", "values.messages.content", "messages.name", "messages.id", "raw"]}
    export = exported(saver, thread, **rules)
    shown = json.dumps([export["shared"], export["documents"]])
    assert f"I am {MAIL}" not in shown
    assert f'"{KEY}' not in shown
    assert base64.b64encode(b"in bytes").decode()[:10] not in shown
    marks = [each for each in nodes(export["shared"]) if each.get("masked")]
    assert {"account.key"} <= {each["masked"] for each in marks}
    # What another rule would have been for is there.
    assert MAIL in shown


@pytest.mark.engines("dynamodb-local")
def test_of_what_is_masked_the_shape_is_left_and_of_what_is_left_out_nothing(
    saver: DynamoDBSaver, thread: str
) -> None:
    values = {"a": {"list": [1, 2, 3], "text": "four", "number": 5, "object": {"x": 1}}}
    store(saver, thread_config(thread), "1", values)
    keys = ["a.list", "a.text", "a.number", "a.object"]

    def state_of(**rules: Any) -> dict[str, Any]:
        export = exported(saver, thread, **rules)
        at = {"thread": thread, "ns": "", "checkpoint": "1"}
        [channel] = whole(export["documents"][address("state", at)], export["shared"])["channels"]
        return {each["key"]: each["node"] for each in channel["node"]["entries"]}

    masked = state_of(masked=keys)
    assert (masked["list"]["kind"], masked["list"]["length"], masked["list"]["items"]) == ("list", 3, [])
    assert (masked["object"]["kind"], masked["object"]["length"]) == ("object", 1)
    assert (masked["text"]["text"], masked["text"]["bytes"]) == ("[masked: a.text]", 4)
    assert masked["number"]["text"] == "[masked: a.number]"
    left_out = state_of(left_out=keys)
    assert {each["kind"] for each in left_out.values()} == {"text"}
    assert {each["bytes"] for each in left_out.values()} == {0}


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("action", ["masked", "left_out"])
def test_owner_and_title_are_hidden_as_values_are(saver: DynamoDBSaver, thread: str, action: str) -> None:
    store(saver, thread_config(thread), "1", {"text": "x"})
    title = f"What {MAIL} has asked for in a title of some length"
    saver.set_thread(thread, owner="ada lovelace", title=title)
    at = address("thread", {"thread": thread})

    def described(**rules: Any) -> tuple[str, str]:
        export = exported(saver, thread, **rules)
        found = whole(export["documents"][at], export["shared"])
        assert all(each["times"] for each in export["masks"])
        return found["owner"]["text"], found["title"]["text"]

    mark = f"[{action.replace('_', ' ')}: "
    assert described() == ("ada lovelace", title)
    assert described(**{action: ["owner", "title"]}) == (f"{mark}owner]", f"{mark}title]")
    assert MAIL not in str(described(**{action: ["mail"]}))


class Said(TypedDict, total=False):
    """A log of objects in a delta channel."""

    log: Annotated[list[Any], DeltaChannel(lambda state, writes: [*state, *writes], snapshot_frequency=3)]


@pytest.mark.engines("dynamodb-local")
def test_keys_lead_through_what_a_delta_channel_is_rebuilt_from(saver: DynamoDBSaver, thread: str) -> None:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Said)
    graph.add_node(
        "say", lambda state: {"log": {"key": f"{KEY}-{len(state.get('log', []))}", "open": "seen"}}
    )
    graph.add_edge(START, "say")
    compiled = graph.compile(checkpointer=saver)
    for _ in range(5):
        compiled.invoke({"log": {"key": KEY, "open": "seen"}}, thread_config(thread))
    clear = json.dumps(exported(saver, thread))
    assert KEY in clear
    assert "delta channel" in clear
    export = json.dumps(exported(saver, thread, masked=["log.key"]))
    assert KEY not in export
    assert "seen" in export


@pytest.mark.engines("dynamodb-local")
def test_fields_of_messages_are_masked_by_their_keys(saver: DynamoDBSaver, thread: str) -> None:
    call = {"name": "look_up", "args": {"page": "secret"}, "id": "secret"}
    usage = {"input_tokens": 77_777, "output_tokens": 1, "total_tokens": 77_778}
    said = [
        AIMessage("x", id="1", tool_calls=[call], usage_metadata=usage, response_metadata={"model": "secret"})
    ]
    store(saver, thread_config(thread), "1", {"messages": said})
    keys = ["messages.tool_calls", "usage_metadata", "response_metadata"]
    shown = json.dumps(exported(saver, thread, masked=keys)["shared"])
    assert "secret" not in shown
    assert "77777" not in shown


@pytest.mark.engines("dynamodb-local")
def test_an_expression_of_ones_own_masks_numbers_too_and_leaves_the_shape_of_documents(
    saver: DynamoDBSaver, thread: str
) -> None:
    store(saver, thread_config(thread), "1", {"card": 4111111111111111, "text": "a text of kind list"})
    export = exported(saver, thread, masked=["/\\b\\d{16}\\b/", "/text|kind|list|loop/"])
    shown = json.dumps([export["shared"], export["documents"]])
    assert "4111111111111111" not in shown
    at = {"thread": thread, "ns": "", "checkpoint": "1"}
    state = whole(export["documents"][address("state", at)], export["shared"])
    assert {each["node"]["kind"] for each in state["channels"]} == {"text"}
    assert "a text of" not in shown


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("keys AKIAIOSFODNN7EXAMPLE here", "keys"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "keys"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "keys"),
        ("AIzaSyA-abcdefghijklmnopqrstuvwxyz01234", "keys"),
        ('{"api_key": "12345678abcdef"}', "keys"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "keys"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "tokens"),
        ("Authorization: Bearer abc.def-123456", "tokens"),
        ("xoxb-1234567890-abcdefghij", "tokens"),
        ("password: hunter22", "tokens"),
        ("ada+test@mail.example.org", "mail"),
        ("«jürgen@bücher.example»", "mail"),
    ],
)
def test_patterns_find_what_they_are_named_after(text: str, rule: str) -> None:
    masks = Masks([parse_rule(rule, "masked")])
    shown, used = masks.text(text)
    assert used is not None
    assert f"[masked: {rule}]" in shown
    secret = re.sub(r"\W", "", text)[-8:]
    assert secret not in re.sub(r"\W", "", shown.replace("masked", ""))


@pytest.mark.parametrize("text", ["a word", "1 @ 2", "key", "the token of my esteem", "sk-short", "x@y"])
def test_patterns_leave_other_texts_alone(text: str) -> None:
    masks = Masks([parse_rule(each, "masked") for each in ("keys", "tokens", "mail")])
    assert masks.text(text) == (text, None)


@pytest.mark.parametrize("text", ["", "a..b", ".", "/(/", "/x*/", "values."])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(CheckpointerInputError):
        parse_rule(text, "masked")


def test_what_leaves_out_goes_before_what_masks() -> None:
    left_out = [parse_rule(each, "left out") for each in ("a", "/xy/")]
    masks = Masks([*(parse_rule(each, "masked") for each in ("a", "/x/")), *left_out])
    rule = masks.at(("b", "a", "c"))
    assert rule is not None
    assert rule.action == "left out"
    assert masks.text("a xy z")[0] == "[left out: /xy/]"
    assert masks.at(("b",)) is None


# The file


def test_the_file_has_all_of_the_page_in_it_and_a_policy_that_allows_nothing_else() -> None:
    hostile = {"shared": ["</script><script>alert(1)</script>", "\u2028\ud800<!--"], "documents": {}}
    page = bundled(STATIC, hostile)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    [data] = re.findall(r'<script type="application/json" id="export">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data) == hostile
    [script] = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for content in (script, style):
        digest = base64.b64encode(sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert page.isascii() or page.encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the files of a small page."""
    (tmp_path / "index.html").write_text(
        '<head>\n<meta charset="utf-8" />\n<link rel="stylesheet" href="a.css" />\n'
        '<script type="module" src="app.js"></script>\n</head><body></body>'
    )
    (tmp_path / "a.css").write_text("p { color: red }\n")
    (tmp_path / "app.js").write_text(
        'import { one, two as three } from "./b.js";\nconsole.log(one, three);\n'
    )
    (tmp_path / "b.js").write_text(
        'import { deep } from "./c-d.js";\nexport const one = deep;\nexport async function* two() {}\n'
    )
    (tmp_path / "c-d.js").write_text("export class Deep {}\nexport function deep() {}\n")
    return tmp_path


def test_modules_come_after_those_that_they_import(folder: Path) -> None:
    script = modules(folder, "app")
    assert script.index("module_c_d") < script.index("module_b ") < script.index("module_app")
    assert "const { one, two: three } = module_b;" in script
    assert "return { one, two };" in script
    assert not re.search(r"^(?:import|export)", script, re.MULTILINE)
    assert "p { color: red }" in bundled(folder, {})


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("c-d.js", 'import { one } from "./b.js";\nexport function deep() {}\n', "import each other"),
        ("b.js", "export default 1;\n", "another form"),
        ("b.js", 'import * as c from "./c-d.js";\n', "another form"),
        ("a.css", "</style>", "the end of its own element"),
        ("index.html", "<p>nothing</p>", "no module"),
    ],
)
def test_what_cannot_be_made_one_is_an_error(folder: Path, name: str, content: str, why: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(BundleError, match=why):
        bundled(folder, {})


def test_addresses_are_as_javascript_writes_them() -> None:
    assert address("start", {}) == "api/start"
    found = address("tree", {"thread": "a b&c/ä!~*'()", "ns": ""})
    assert found == "api/tree?thread=a%20b%26c%2F%C3%A4!~*'()&ns="


@pytest.mark.engines("dynamodb-local")
def test_what_would_make_two_checkpoints_one_is_refused(saver: DynamoDBSaver, thread: str) -> None:
    store(saver, thread_config(thread), "1", {"text": "x"})
    store(saver, thread_config(thread), "2", {"text": "x"})
    with pytest.raises(CheckpointerInputError, match="narrower"):
        exported(saver, thread, masked=["/[0-9]+/"])


@pytest.mark.engines("dynamodb-local")
def test_the_exporter_tells_how_far_it_is(saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    for each in range(3):
        talk.put(raw=noise(10, each))
    told: list[tuple[int, int]] = []
    Exporter(Session(saver), Masks(), lambda *each: told.append(each)).export(thread)
    assert told == [(1, 3), (2, 3), (3, 3)]
