"""The programs of docs/deploy.md, "With Terraform, the CDK or SAM", name what the templates have.

They were written by their tools' documents. Neither tool runs here: no package registry has Terraform.
"""

from __future__ import annotations

import ast
import re

from tests.infra.rendering import INFRA, load, render

SECTION = (INFRA.parent / "docs" / "deploy.md").read_text().split("## With Terraform, the CDK or SAM")[1]
SNIPPETS = dict(re.findall(r"```(hcl|python)\n(.*?)```", SECTION.split("\n## ")[0], re.DOTALL))


def test_terraform_passes_parameters_and_takes_outputs_that_there_are() -> None:
    stacks = dict(re.findall(r'"aws_cloudformation_stack" "(\w+)" \{\n(.*?)\n\}', SNIPPETS["hcl"], re.DOTALL))
    assert list(stacks) == ["checkpoints", "observability"]
    exports: dict[str, str] = {}
    for body in stacks.values():
        [file] = re.findall(r"/([\w-]+\.yaml)", body)
        [parameters] = re.findall(r"parameters += \{ (.*) \}", body)
        given = dict(each.split(" = ") for each in parameters.replace('"', "").split(", "))
        # The name of the first stack, which Terraform reads from it.
        given = {
            key: value.removeprefix("aws_cloudformation_stack.").removesuffix(".name")
            for key, value in given.items()
        }
        stack = render(load(file), given, exports=exports)
        makes_policies = any(each["Type"].startswith("AWS::IAM") for each in stack.resources.values())
        assert ('["CAPABILITY_IAM"]' in body) is makes_policies
        exports |= stack.exports
    [output] = re.findall(r'outputs\["(\w+)"\]', SNIPPETS["hcl"])
    assert output in load("table.yaml")["Outputs"]


def test_the_cdk_passes_parameters_and_takes_resources_that_there_are() -> None:
    calls = [each for each in ast.walk(ast.parse(SNIPPETS["python"])) if isinstance(each, ast.Call)]
    [include] = [each for each in calls if ast.unparse(each.func) == "CfnInclude"]
    given = {str(each.arg): ast.literal_eval(each.value) for each in include.keywords}
    stack = render(load(given["template_file"]), given["parameters"])
    assert stack.properties("Table")["TableName"] == "agents"
    [resource] = [each for each in calls if ast.unparse(each.func).endswith(".get_resource")]
    assert stack.resources[ast.literal_eval(resource.args[0])]["Type"] == "AWS::IAM::ManagedPolicy"
