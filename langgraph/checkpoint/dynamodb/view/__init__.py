"""A page that shows a thread step by step: `langgraph-dynamodb view`. Needs the extra `view`.

`documents` has the contract between the page and its server. Stored data is read once, without importing or running
anything that it names, and nothing is ever changed.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The page's own files."""
