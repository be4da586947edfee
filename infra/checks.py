"""What `make preflight` and `make smoke` share: how a check is made, and what is printed of it.

Owns: verdicts, remedies and their lines. Must not know: what is checked.
"""

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import boto3
from botocore.exceptions import ClientError

T = TypeVar("T")

OK, PROBLEM, LEFT_OUT = "ok", "problem", "left out"


class ProblemError(Exception):
    """Something is not as it has to be; the second argument, if any, is what to do."""


class LeftOutError(Exception):
    """A check that cannot be made here; the message says why."""


def expect(condition: object, otherwise: str, *remedy: str) -> None:
    """Stop a check."""
    if not condition:
        raise ProblemError(otherwise, *remedy)


@dataclass(frozen=True)
class Result:
    """What a check came to."""

    check: str
    verdict: str
    seconds: float
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class Check(Generic[T]):
    """One check: its docstring says what it makes sure of, its remedy what to do if it fails."""

    run: Callable[[T], str]
    remedy: str
    is_slow: bool = False

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return self.run.__name__.strip("_").replace("_", "-")

    def made(self, subject: T) -> Result:
        """Make the check."""
        began = time.monotonic()

        def result(verdict: str, says: object, remedy: str = "") -> Result:
            return Result(self.name, verdict, time.monotonic() - began, " ".join(str(says).split()), remedy)

        try:
            # What agents print is for whoever watches the demo.
            with contextlib.redirect_stdout(io.StringIO()):
                return result(OK, self.run(subject))
        except LeftOutError as why:
            return result(LEFT_OUT, why)
        except ProblemError as error:
            return result(PROBLEM, error.args[0], (*error.args[1:], self.remedy)[0])
        except Exception as error:  # noqa: BLE001 - one part that fails must not keep the others from being checked.
            return result(PROBLEM, f"{type(error).__name__}: {error}", self.remedy)


class Checks(dict[str, Check[T]]):
    """Checks by name, in the order in which they are registered and made."""

    def add(
        self, remedy: str, *, is_slow: bool = False
    ) -> Callable[[Callable[[T], str]], Callable[[T], str]]:
        """Register the decorated function."""

        def register(run: Callable[[T], str]) -> Callable[[T], str]:
            check = Check(run, remedy, is_slow)
            self[check.name] = check
            return run

        return register

    def described(self) -> str:
        """The names, and what each check makes sure of."""
        lines = (f"  {name:12} {each.run.__doc__}{' --slow' * each.is_slow}" for name, each in self.items())
        return "\n".join(["checks:", *lines])


def report(results: Iterable[Result]) -> int:
    """Print each result as it comes, and a summary; return the exit status."""
    by_verdict: dict[str, int] = dict.fromkeys((PROBLEM, LEFT_OUT, OK), 0)
    for each in results:
        by_verdict[each.verdict] += 1
        sys.stdout.write(f"{each.verdict:8} {each.seconds:5.1f} s  {each.check}: {each.says}\n")
        if each.remedy:
            sys.stdout.write(f"{'':18}to do: {each.remedy}\n")
        sys.stdout.flush()
    sys.stdout.write(", ".join(f"{verdict}: {count}" for verdict, count in by_verdict.items()) + "\n")
    return int(by_verdict[PROBLEM] > 0)


def client(service: str) -> Any:  # noqa: ANN401  # The stubs know each service by its own name only.
    """A client of a service of AWS, at the endpoint that the environment names."""
    make: Any = boto3.client
    return make(service)


def described_stack(name: str) -> dict[str, Any] | None:
    """A stack as CloudFormation describes it; None if there is no such stack."""
    try:
        [found] = client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return dict(found)


def outputs(stack: dict[str, Any] | None) -> dict[str, str]:
    """The outputs of a described stack."""
    return {each["OutputKey"]: each["OutputValue"] for each in (stack or {}).get("Outputs", [])}
