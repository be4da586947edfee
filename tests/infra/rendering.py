"""Renders a CloudFormation template for one set of parameters, as far as the templates here use the language.

It exists because moto leaves out what matters most in these templates (Rules, TTL, recovery, encryption, alarms), so
the tests need what CloudFormation would send to each service. An intrinsic function that it does not know is an error,
never a value that is passed through.
"""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from infra.import_template import read_template

INFRA = Path(__file__).parents[2] / "infra"
ACCOUNT_ID = "123456789012"
REGION = "us-east-1"

# What a template may hold at any place: the language has no types of its own.
Node: TypeAlias = Any
Template: TypeAlias = dict[str, Node]

_PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}


# What CloudFormation resolves in `Rules`, of all that the templates use anywhere.
RULE_FUNCTIONS = {"Fn::And", "Fn::Equals", "Fn::Not", "Fn::Or"}


class StackRefusedError(Exception):
    """CloudFormation would not start to create this stack; the message is what it would say."""


class _NoValue:
    """The place of AWS::NoValue: the property that holds it is left out."""


@dataclass(frozen=True)
class Stack:
    """A rendered template.

    Attributes:
        resources: Logical id to resource, without those whose condition is false.
        outputs: Output name to value.
        exports: Export name to value.
    """

    resources: dict[str, Node]
    outputs: dict[str, str]
    exports: dict[str, str]

    def of_type(self, resource_type: str) -> dict[str, Node]:
        """Logical id to properties, for all resources of this type."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == resource_type
        }

    def properties(self, logical_id: str) -> dict[str, Node]:
        """The properties of one resource."""
        properties: dict[str, Node] = self.resources[logical_id].get("Properties", {})
        return properties


@functools.cache
def load(name: str) -> Template:
    """The template at this path below `infra/`."""
    return read_template(INFRA / name)


def render(
    template: Template,
    parameters: Mapping[str, str] | None = None,
    *,
    stack_name: str = "checkpoints",
    exports: Mapping[str, str] | None = None,
) -> Stack:
    """What CloudFormation would create.

    Args:
        template: What `load` returned.
        parameters: Values of parameters; the others get their defaults.
        stack_name: The stack's name.
        exports: What other stacks of the account export.

    Raises:
        StackRefusedError: A parameter or a Rule refuses the values.
    """
    values = _parameter_values(template.get("Parameters", {}), parameters or {})
    renderer = _Renderer(
        template, {**values, **_PSEUDO_PARAMETERS, "AWS::StackName": stack_name}, exports or {}
    )
    renderer.check_rules()
    return renderer.stack()


def _parameter_values(declared: Template, given: Mapping[str, str]) -> dict[str, Node]:
    if unknown := set(given) - set(declared):
        raise StackRefusedError(f"Parameters: {sorted(unknown)} do not exist in the template")
    values: dict[str, Node] = {}
    for name, declaration in declared.items():
        if name not in given and "Default" not in declaration:
            raise StackRefusedError(f"Parameters: [{name}] must have values")
        # CloudFormation compares and passes on every parameter as text, numbers too.
        value = str(given.get(name, declaration.get("Default")))
        is_list = declaration["Type"] == "CommaDelimitedList" or declaration["Type"].startswith("List<")
        values[name] = value.split(",") if is_list else value
        # A pattern of a list holds for each of its elements.
        for element in value.split(",") if is_list else [value]:
            _check_parameter(name, declaration, element)
    return values


def _check_parameter(name: str, declaration: Template, value: str) -> None:
    allowed = [str(choice) for choice in declaration.get("AllowedValues", [])]
    refused = (
        (bool(allowed) and value not in allowed)
        or not re.fullmatch(declaration.get("AllowedPattern", "(?s:.*)"), value)
        or len(value) > declaration.get("MaxLength", len(value))
        or len(value) < declaration.get("MinLength", 0)
        or (declaration["Type"] == "Number" and not _number_is_allowed(declaration, value))
    )
    if refused:
        reason = declaration.get("ConstraintDescription", f"must be one of {allowed}")
        raise StackRefusedError(f"Parameter {name} failed to satisfy constraint: {name} {reason}")


def _number_is_allowed(declaration: Template, value: str) -> bool:
    number = float(value)
    return bool(declaration.get("MinValue", number) <= number <= declaration.get("MaxValue", number))


class _Renderer:
    """Resolves the functions of one template against one set of values."""

    def __init__(self, template: Template, values: Mapping[str, Node], exports: Mapping[str, str]) -> None:
        self._template = template
        self._values = values
        self._exports = exports
        self._functions: dict[str, Callable[[Node], Node]] = {
            "Ref": self._ref,
            "Condition": self._condition,
            "Fn::And": lambda terms: all(self._bool(term) for term in terms),
            "Fn::Or": lambda terms: any(self._bool(term) for term in terms),
            "Fn::Not": lambda terms: not self._bool(terms[0]),
            "Fn::Equals": lambda sides: _text(self.value(sides[0])) == _text(self.value(sides[1])),
            "Fn::If": lambda branches: self.value(branches[1 if self._condition(branches[0]) else 2]),
            "Fn::GetAtt": self._attribute,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::Split": lambda argument: self.value(argument[1]).split(argument[0]),
            "Fn::ImportValue": self._import,
        }

    def check_rules(self) -> None:
        for rule in self._template.get("Rules", {}).values():
            used = set(re.findall(r"'(Fn::\w+)'", str(rule)))
            assert used <= RULE_FUNCTIONS, f"CloudFormation knows no {used - RULE_FUNCTIONS} in rules"
            if self._bool(rule.get("RuleCondition", True)):
                for assertion in rule["Assertions"]:
                    if not self._bool(assertion["Assert"]):
                        raise StackRefusedError(assertion["AssertDescription"])

    def stack(self) -> Stack:
        resources = self._existing("Resources")
        outputs = self._existing("Outputs")
        return Stack(
            resources={name: self.value(resource) for name, resource in resources.items()},
            outputs={name: self.value(output["Value"]) for name, output in outputs.items()},
            exports={
                self.value(output["Export"]["Name"]): self.value(output["Value"])
                for output in outputs.values()
                if "Export" in output
            },
        )

    def value(self, node: Node) -> Node:
        if isinstance(node, list):
            return [item for item in map(self.value, node) if item is not _NoValue]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            [(name, argument)] = node.items()
            # `Condition` is a function only where it names one; in a policy and on a resource it is a plain key.
            if name in self._functions and not (name == "Condition" and isinstance(argument, dict)):
                return self._functions[name](argument)
            assert not name.startswith("Fn::"), f"the tests cannot render {name}"
        rendered = {key: self.value(value) for key, value in node.items()}
        return {key: value for key, value in rendered.items() if value is not _NoValue}

    def _existing(self, section: str) -> dict[str, Node]:
        """The entries of a section whose condition holds, without the condition itself."""
        return {
            name: {key: value for key, value in entry.items() if key not in {"Condition", "Metadata"}}
            for name, entry in self._template.get(section, {}).items()
            if "Condition" not in entry or self._condition(entry["Condition"])
        }

    def _bool(self, node: Node) -> bool:
        value = self.value(node)
        assert isinstance(value, bool), f"{node} is no condition"
        return value

    def _condition(self, name: Node) -> bool:
        return self._bool(self._template["Conditions"][name])

    def _ref(self, name: Node) -> Node:
        if name == "AWS::NoValue":
            return _NoValue
        if name in self._values:
            return self._values[name]
        return self._physical_id(name)

    def _physical_id(self, name: str) -> Node:
        resource = self._template["Resources"][name]
        assert "Condition" not in resource or self._condition(resource["Condition"]), f"{name} is not created"
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            return f"arn:aws:iam::{ACCOUNT_ID}:policy/{self._values['AWS::StackName']}-{name}"
        for name_property in ("TableName", "LogGroupName"):
            given = self.value(properties[name_property]) if name_property in properties else _NoValue
            if given is not _NoValue:
                return str(given)
        return f"{self._values['AWS::StackName']}-{name}"

    def _attribute(self, path: Node) -> Node:
        name, attribute = path.split(".", 1) if isinstance(path, str) else path
        service = self._template["Resources"][name]["Type"].split("::")[1].lower()
        kind = {"dynamodb": "table/", "iam": "role/", "kms": "key/", "lambda": "function:"}.get(service, "")
        arn = f"arn:aws:{service}:{REGION}:{ACCOUNT_ID}:{kind}{self._physical_id(name)}"
        return {"Arn": arn, "StreamArn": f"{arn}/stream/label"}.get(attribute, f"{name}.{attribute}")

    def _sub(self, argument: Node) -> Node:
        text, extra = (argument, {}) if isinstance(argument, str) else argument
        names = {name: self.value(value) for name, value in extra.items()}

        def replacement(match: re.Match[str]) -> str:
            name = match[1]
            if name in names:
                return _text(names[name])
            return _text(self._attribute(name.split(".", 1)) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", replacement, text)

    def _join(self, argument: Node) -> Node:
        delimiter, parts = argument[0], self.value(argument[1])
        return _text(delimiter).join(map(_text, parts))

    def _import(self, name: Node) -> str:
        export = self.value(name)
        if export not in self._exports:
            raise StackRefusedError(f"No export named {export} found.")
        return self._exports[export]


def _text(value: Node) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
