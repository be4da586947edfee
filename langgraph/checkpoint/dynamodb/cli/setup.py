"""`setup`: the table for development."""

from __future__ import annotations

from .._format.schema import TEMPLATE_COMMAND
from .command import Yes
from .context import CommandContext

_PRODUCTION = f"""\
This makes a table without recovery, deletion protection, policies or alarms. For anything but development deploy it:
  make deploy                                  (in a clone of the repository, with alarms and a dashboard)
  {TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM\
"""


def setup(context: CommandContext, *, yes: Yes = False) -> None:
    """Create the table for development, or check it.

    On AWS, it first says how to deploy the template instead, and asks. With an endpoint other than AWS's, it does
    not ask.
    """
    name, address = context.options.table_name, context.client.meta.endpoint_url
    if ".amazonaws.com" in address:
        context.output.note(_PRODUCTION)
        context.confirm(f"Create table {name} at {address} anyway?", yes=yes, has_dry_run=False)
    context.saver.setup()
    document = {"table_name": name, "endpoint_url": address}
    context.output.result(document, f"table {name} is ready at {address}")
