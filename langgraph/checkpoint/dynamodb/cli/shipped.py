"""The files in the package that can be printed. Loads nothing that needs the extra `cli`."""

from __future__ import annotations

from pathlib import Path

from langgraph.checkpoint.dynamodb._format.schema import DOCS_COMMAND, TEMPLATE_COMMAND

_PACKAGE = Path(__file__).parents[1]

TEMPLATE_HELP = "Print the CloudFormation template of the table and its policies."
DEPLOY = f"""\
Deploy it with the AWS CLI, and attach the agent policy of its outputs to the role that runs your agents:

  {TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM
  aws cloudformation describe-stacks --stack-name langgraph-checkpoints --query "Stacks[0].Outputs"

The table is called langgraph-checkpoints unless you add --parameter-overrides TableName=...
"""
DOCS_HELP = "Print a document of this release, or the list of them."
SCHEMA_HELP = "Print the JSON Schema of a file that configures a checkpointer."


def template() -> str:
    """Return the template from the package if it was built with it, or else from the source tree."""
    shipped = _PACKAGE / "table.yaml"
    return (shipped if shipped.exists() else _PACKAGE.parents[2] / "infra" / "table.yaml").read_text(
        encoding="utf-8"
    )


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
        msg = f"there is no document {name!r}; `{DOCS_COMMAND}` lists those that there are"
        raise LookupError(msg)
    return found[Path(name).stem]


def schema() -> str:
    """Return the schema by which editors check a file with a `checkpointer:`."""
    return (_PACKAGE / "config" / "checkpointer.schema.json").read_text(encoding="utf-8")
