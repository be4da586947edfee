"""Judges DynamoDB requests as IAM would, in front of whatever engine answers them.

Engines on this machine take every request. `Gate` hangs in the event system of a botocore session, reads each request
as it goes out, and refuses it unless the policies allow it. It covers what the policies in `infra/` use of IAM's
language; any other element of a policy is an error, so that no policy passes by not being understood.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import boto3
from botocore.exceptions import ClientError
from botocore.model import OperationModel

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.infra.rendering import ACCOUNT_ID, REGION, Node

LEADING_KEYS = "dynamodb:LeadingKeys"
ATTRIBUTES = "dynamodb:Attributes"
# The hash key of the table and of each of its indexes: what LeadingKeys is made from.
_SCHEMA = table_schema("any")
HASH_KEYS: Mapping[str | None, str] = {
    each.get("IndexName"): each["KeySchema"][0]["AttributeName"]
    for each in (_SCHEMA, *_SCHEMA["GlobalSecondaryIndexes"])
}

Context = Mapping[str, Sequence[str]]
# More than any policy of the templates allows.
EVERYTHING: Node = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass(frozen=True)
class Request:
    """What IAM decides about: one action on one resource, in a context of condition keys."""

    action: str
    resource: str
    context: Context

    @property
    def leading_keys(self) -> Sequence[str]:
        """The partition keys that the request names."""
        return self.context.get(LEADING_KEYS, ())


@dataclass
class Gate:
    """Lets through what the policies allow, and remembers every request.

    Attributes:
        documents: The policies of the caller.
    """

    documents: Sequence[Node]
    allowed: list[Request] = field(default_factory=list)
    refused: list[Request] = field(default_factory=list)

    def session(self) -> boto3.Session:
        """Make a session, each request of whose clients is judged."""
        session = boto3.session.Session()
        session.events.register("before-call.dynamodb", self._judge)
        return session

    def allowed_actions(self) -> set[str]:
        """The actions of the requests let through."""
        return {request.action for request in self.allowed}

    def _judge(self, model: OperationModel, params: dict[str, Node], **_: object) -> None:
        """Record a request; raise what DynamoDB answers if it is not allowed."""
        for request in requests_of(model.name, json.loads(params["body"])):
            if not is_allowed(self.documents, request):
                self.refused.append(request)
                message = f"not authorized to perform: {request.action} on resource: {request.resource}"
                raise ClientError(
                    {"Error": {"Code": "AccessDeniedException", "Message": message}}, model.name
                )
            self.allowed.append(request)


def requests_of(operation: str, body: Node) -> Iterator[Request]:
    """What IAM has to allow for one API call: a batch is one decision per table, over all of its keys."""
    if operation in {"BatchGetItem", "BatchWriteItem"}:
        for table, entries in body["RequestItems"].items():
            yield _request(operation, _arn(table), list(_batch_keys(entries)), {})
        return
    index = body.get("IndexName")
    context = {ATTRIBUTES: _updated_attributes(body)} if operation == "UpdateItem" else {}
    resource = _arn(body["TableName"]) + (f"/index/{index}" if index else "")
    yield _request(operation, resource, _keys(operation, body, HASH_KEYS[index]), context)


def _request(operation: str, resource: str, keys: Sequence[str], context: Context) -> Request:
    leading = {LEADING_KEYS: keys} if keys else {}
    return Request(f"dynamodb:{operation}", resource, {**context, **leading})


def _arn(table: str) -> str:
    return table if table.startswith("arn:") else f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}"


def _batch_keys(entries: Node) -> Iterator[str]:
    if isinstance(entries, dict):
        entries = [{"GetRequest": {"Key": key}} for key in entries["Keys"]]
    for entry in entries:
        [(_, request)] = entry.items()
        yield _only_value(request.get("Key", request.get("Item"))["PK"])


def _keys(operation: str, body: Node, hash_key: str) -> list[str]:
    if operation in {"GetItem", "DeleteItem", "UpdateItem"}:
        return [_only_value(body["Key"][hash_key])]
    if operation == "PutItem":
        return [_only_value(body["Item"][hash_key])]
    if operation == "Query":
        names = body.get("ExpressionAttributeNames", {})
        equalities = re.findall(r"([#\w]+)\s*=\s*(:\w+)", body["KeyConditionExpression"])
        [value] = [value for name, value in equalities if names.get(name, name) == hash_key]
        return [_only_value(body["ExpressionAttributeValues"][value])]
    return []


def _updated_attributes(body: Node) -> list[str]:
    """The attributes that an update names. Those of other requests are not worked out: no policy here asks."""
    names = body.get("ExpressionAttributeNames", {})
    expressions = " ".join(body.get(f"{kind}Expression", "") for kind in ("Update", "Condition"))
    words = re.findall(r"(?<![:\w#])[A-Za-z_]\w*", expressions)
    return [*body["Key"], *names.values(), *words]


def _only_value(attribute: Node) -> str:
    [value] = attribute.values()
    return str(value)


def is_allowed(documents: Iterable[Node], request: Request) -> bool:
    """IAM's decision: a statement allows it, and none denies it."""
    statements = [statement for document in documents for statement in document["Statement"]]
    effects = {statement["Effect"] for statement in statements if _applies(statement, request)}
    return effects == {"Allow"}


def named_in(document: Node) -> set[str]:
    """Every action that a policy allows under some condition, as it names it."""
    allowing = [statement for statement in document["Statement"] if statement["Effect"] == "Allow"]
    return {action for statement in allowing for action in listed(statement["Action"])}


def actions_of(document: Node) -> set[str]:
    """Every DynamoDB action that a policy allows under some condition."""
    return {action for action in named_in(document) if action.startswith("dynamodb:")}


def _applies(statement: Node, request: Request) -> bool:
    unknown = statement.keys() - {"Sid", "Effect", "Action", "Resource", "Condition"}
    assert not unknown, f"the evaluator does not know {unknown}"
    return (
        any(_matches(pattern, request.action) for pattern in listed(statement["Action"]))
        and any(_matches(pattern, request.resource) for pattern in listed(statement["Resource"]))
        and all(
            _OPERATORS[operator](request.context.get(key), listed(wanted), request.context)
            for operator, tests in statement.get("Condition", {}).items()
            for key, wanted in tests.items()
        )
    )


def listed(value: Node) -> list[str]:
    """What a policy names as one text, or as several."""
    return value if isinstance(value, list) else [value]


def _matches(pattern: str, value: str, context: Context | None = None) -> bool:
    """IAM's wildcards, after its variables: what a variable brings is text, and an unknown one matches nothing."""
    expression = ""
    for variable, wildcard, literal in re.findall(r"\$\{([^}]*)\}|([*?])|([^*?$]+|\$)", pattern):
        if variable:
            if variable not in (context or {}):
                return False
            [text] = (context or {})[variable]
            expression += re.escape(text)
        else:
            expression += {"*": ".*", "?": "."}.get(wildcard, re.escape(literal))
    return re.fullmatch(expression, value, re.DOTALL) is not None


def _like(values: Sequence[str] | None, patterns: list[str], context: Context) -> bool:
    assert values is None or len(values) == 1, "a condition on one value met several"
    return values is not None and any(_matches(pattern, values[0], context) for pattern in patterns)


def _equals(values: Sequence[str] | None, wanted: list[str], _: Context) -> bool:
    return values is not None and values[0] in wanted


# ForAllValues holds where there is no value at all, and ForAnyValue does not, which is why a policy adds a Null
# condition.
_OPERATORS: dict[str, Callable[[Sequence[str] | None, list[str], Context], bool]] = {
    "Bool": _equals,
    "ForAllValues:StringEquals": lambda values, wanted, _: set(values or ()) <= set(wanted),
    "ForAllValues:StringLike": lambda values, patterns, context: all(
        _like([value], patterns, context) for value in values or ()
    ),
    "ForAllValues:StringNotEquals": lambda values, unwanted, _: not set(values or ()) & set(unwanted),
    "ForAnyValue:StringNotLike": lambda values, patterns, context: any(
        not _like([value], patterns, context) for value in values or ()
    ),
    "Null": lambda values, wanted, _: (values is None) == (wanted == ["true"]),
    "StringEquals": _equals,
    "StringLike": _like,
    "StringNotLike": lambda values, patterns, context: not _like(values, patterns, context),
}
