"""A page that shows a thread step by step: `langgraph-dynamodb view`. Needs the extra `view`.

`documents` is the contract between the page and its server. Nothing stored is imported, run or changed.
"""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The page's own files."""
