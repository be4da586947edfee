"""The package's own files, printed without an extra and without a saver: version, documents, templates."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from .._format.schema import DOCS_COMMAND, TEMPLATE_COMMAND
from ..version import __version__

_PACKAGE = Path(__file__).parents[1]

TABLE_ARN = "arn:aws:dynamodb:*:*:table/langgraph-checkpoints"
COMMANDS = {
    "template": "Print a CloudFormation template, or a policy as JSON.",
    "docs": "Print a document of this release, or the list of them.",
}
"""The commands with their help."""
_DEPLOY = f"""\
Deploy it with the AWS CLI, and attach the agent policy of its outputs to the role that runs your agents:

  {TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM
  aws cloudformation describe-stacks --stack-name langgraph-checkpoints --query "Stacks[0].Outputs"

The table is called langgraph-checkpoints unless you add --parameter-overrides TableName=...
"""


class _TemplateLoader(yaml.SafeLoader):
    """Reads the short forms of the intrinsic functions (`!Ref x`) as their long forms."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    if isinstance(node, yaml.MappingNode):
        return {name: loader.construct_mapping(node, deep=True)}
    value = loader.construct_scalar(cast("yaml.ScalarNode", node))
    return {name: value.split(".", 1) if name == "Fn::GetAtt" else value}


_TemplateLoader.add_multi_constructor("!", _intrinsic)


def parse_template(text: str) -> dict[str, Any]:
    """Parse a template, with the short forms of the intrinsic functions (`!Ref x`) as their long forms."""
    # The loader is a safe one: it adds only the tags of CloudFormation to SafeLoader.
    template: dict[str, Any] = yaml.load(text, Loader=_TemplateLoader)  # noqa: S506
    return template


def template(name: str | None = None) -> str:
    """Return a template from the package if it was built with it, or else from the source tree.

    Args:
        name: The template; that of the table without a name.

    Raises:
        LookupError: There is no template of that name.
    """
    found = _templates()
    if name not in {None, *found}:
        raise LookupError(f"there is no template {name!r}; `{TEMPLATE_COMMAND} --list` lists them")
    return found[name or "table"].read_text(encoding="utf-8")


def template_list() -> str:
    """Return the templates' names, each with the first sentence of its description."""
    described = {name: parse_template(template(name))["Description"] for name in _templates()}
    return "".join(f"{name:14}  {text.partition('. ')[0].rstrip('.')}\n" for name, text in described.items())


def policy(role: str, table_arn: str = TABLE_ARN) -> str:
    """Return one of the templates' policies as JSON, for a table without a customer key.

    Args:
        role: Whom it is for; a tenant is told by the session tag `tenant`.
        table_arn: The table. Region and account may be `*`.

    Raises:
        LookupError: There is no policy for that role.
    """
    documents = {
        logical_id.removesuffix("Policy").lower(): resource["Properties"]["PolicyDocument"]
        for name in ("table", "tenant")
        for logical_id, resource in parse_template(template(name))["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    if role not in documents:
        raise LookupError(f"there is no policy for {role!r}; use one of {', '.join(documents)}")
    return json.dumps(_resolved(documents[role], table_arn), indent=2) + "\n"


def _resolved(node: Any, table_arn: str) -> Any:
    """Resolve the functions of a policy; each condition (a customer key, a tenant by name) is false."""
    if isinstance(node, list):
        return [each for each in (_resolved(each, table_arn) for each in node) if each is not None]
    if not isinstance(node, dict):
        return node
    match list(node.items()):
        case [("Ref", "AWS::NoValue")]:
            return None
        case [("Fn::If", [_, _, otherwise])]:
            return _resolved(otherwise, table_arn)
        case [("Fn::GetAtt" | "Fn::ImportValue", _)]:
            return table_arn
        case [("Fn::Sub", text)]:
            text = text if isinstance(text, str) else text[0]
            return text.replace("${Table.Arn}", table_arn).replace("${TableArn}", table_arn)
    resolved = {key: _resolved(value, table_arn) for key, value in node.items()}
    return {key: value for key, value in resolved.items() if value is not None}


def _templates() -> dict[str, Path]:
    shipped = _PACKAGE / "templates"
    folder = shipped if shipped.exists() else _PACKAGE.parents[2] / "infra"
    paths = {
        path.parent.name if path.stem == "template" else path.stem: path for path in folder.rglob("*.yaml")
    }
    return dict(sorted(paths.items()))


def document(name: str | None = None) -> str:
    """Return a document by its name, with or without its folder and suffix; without a name, the list of documents.

    Raises:
        LookupError: There is no document of that name.
    """
    shipped = _PACKAGE / "docs"
    folder = shipped if shipped.exists() else _PACKAGE.parents[2] / "docs"
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))}
    if name is None:
        return "".join(f"{each:42}  {text.splitlines()[0].lstrip('# ')}\n" for each, text in found.items())
    if Path(name).stem not in found:
        raise LookupError(f"there is no document {name!r}; `{DOCS_COMMAND}` lists them")
    return found[Path(name).stem]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the command line asks for."""
    parser, _ = parsers()
    given = parser.parse_args(arguments)
    try:
        if given.command == "docs":
            text = document(given.name)
        elif given.policy:
            text = policy(given.policy, given.table_arn or TABLE_ARN)
        elif given.table_arn:
            parser.error("argument --table-arn: it is the table of a policy; add --policy")
        else:
            text = template_list() if given.list else template(given.name)
    except LookupError as error:
        parser.error(str(error))
    sys.stdout.write(text)


def parsers() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of the whole command line, and those of its commands."""
    parser = argparse.ArgumentParser(prog="langgraph-dynamodb")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    template, docs = (
        commands.add_parser(
            name, help=text, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        for name, text in COMMANDS.items()
    )
    template.epilog = _DEPLOY
    printed = template.add_mutually_exclusive_group()
    printed.add_argument(
        "name", nargs="?", metavar="NAME", help="The template, such as gateway; otherwise that of the table."
    )
    printed.add_argument("--list", action="store_true", help="Print the list of templates instead.")
    printed.add_argument(
        "--policy",
        metavar="ROLE",
        help="Print a policy as JSON instead: agent, runner, operator, reader, or tenant by session tag.",
    )
    template.add_argument(
        "--table-arn", metavar="ARN", help=f"The table that the policy is for; otherwise {TABLE_ARN}."
    )
    docs.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="The name of a document, such as runbook; without it, the list.",
    )
    return parser, commands.choices
