"""The version of the package, and how it is installed: the one place that says either."""

__version__ = "0.1.0"
IS_PUBLISHED = False
"""Whether the package index has this package. Until then, it is installed from a clone."""


def requirement(extra: str) -> str:
    """Return the argument of `pip install` that brings an extra of this package."""
    return (
        f'"langgraph-dynamodb[{extra}]"' if IS_PUBLISHED else f'".[{extra}]" (in a clone of the repository)'
    )
