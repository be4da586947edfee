"""The files that the package brings: templates, their list, and their policies as JSON."""

import re

from langgraph.checkpoint.dynamodb.cli import printed
from tests.support.documents import ROOT


def test_the_short_forms_of_functions_are_read_as_their_long_forms() -> None:
    text = "a: !Ref b\nc: !GetAtt d.e\nf: !Sub [g, {h: i}]\nj: !Transform {k: l}\nm: !Condition n\n"
    assert printed.parse_template(text) == {
        "a": {"Ref": "b"},
        "c": {"Fn::GetAtt": ["d", "e"]},
        "f": {"Fn::Sub": ["g", {"h": "i"}]},
        "j": {"Fn::Transform": {"k": "l"}},
        "m": {"Condition": "n"},
    }


def test_the_list_has_a_line_for_each_template() -> None:
    lines = printed.template_list().splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names)
    assert {"table", "tenant", "tenant-role", "gateway", "saver-metrics"} <= set(names)
    assert all(len(line.split()) > 3 for line in lines)


def test_each_document_that_a_message_names_is_there() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "langgraph").rglob("*.py")))
    named = set(
        re.findall(r"(?:langgraph-dynamodb docs|\{DOCS_COMMAND\}) ([a-z-]+)`", re.sub(r"\s+", " ", source))
    )
    assert named >= {"runbook", "encrypt", "migrating"}
    for name in named:
        assert printed.document(name)
