"""Whether the installed aiobotocore fits the installed botocore.

aiobotocore works with a few releases of botocore only. An installer that adds a package with a newer boto3 may leave a
pair that does not fit, and its first request then ends in an error deep inside aiobotocore.
"""

from __future__ import annotations

from importlib import metadata


def misfit() -> str | None:
    """Say that aiobotocore does not fit botocore, and what mends it; `None` if it fits or is not installed."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - importing the saver should cost little.

    try:
        requirements = [Requirement(each) for each in metadata.requires("aiobotocore") or ()]
        own, installed = metadata.version("aiobotocore"), metadata.version("botocore")
    except metadata.PackageNotFoundError:
        return None
    for each in requirements:
        if each.name == "botocore" and not each.specifier.contains(installed, prereleases=True):
            return (
                f"aiobotocore {own} needs botocore {each.specifier}, and botocore {installed} is installed; run"
                ' `pip install --upgrade "aiobotocore[boto3]"`, which installs versions that fit'
            )
    return None
