"""A page that shows what a thread was, step by step: `langgraph-dynamodb view`. Needs the extra `view`.

`documents` says what the page is told, and by which requests. What is stored is read once, without importing or running
anything that it names, and nothing is ever changed.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The page's own files."""
