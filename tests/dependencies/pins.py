"""What a constraints file pins for this Python, beside what is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

CONSTRAINTS_FOLDER = Path(__file__).parents[2] / "constraints"


def pinned_versions(environment: str) -> dict[str, str]:
    """Read the version of every package that an environment pins for this Python and platform.

    Args:
        environment: The constraints file's name without its ending.

    Returns:
        The version of each package.
    """
    lines = (CONSTRAINTS_FOLDER / f"{environment}.txt").read_text().splitlines()
    requirements = [Requirement(line) for line in lines if not line.lstrip().startswith("#")]
    return {
        requirement.name: str(requirement.specifier).removeprefix("==")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    }


def installed_version(name: str) -> Version | None:
    """Return the version of a package that is installed, or None.

    Args:
        name: The distribution's name.

    Returns:
        Its version.
    """
    try:
        return Version(version(name))
    except PackageNotFoundError:
        return None


def differing_versions(environment: str) -> dict[str, tuple[str, str]]:
    """Compare the packages that are installed with the pins of an environment.

    Args:
        environment: The constraints file's name without its ending.

    Returns:
        For each installed package of another version than the pinned one: the pinned and the installed version.
    """
    installed = {name: (pin, installed_version(name)) for name, pin in pinned_versions(environment).items()}
    return {
        name: (pin, str(found))
        for name, (pin, found) in installed.items()
        if found not in (None, Version(pin))
    }
