"""`python -m tools.schema`: writes the JSON Schema of a configuration anew, where the package has it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from langgraph.checkpoint.dynamodb.config.schema import checkpointer_schema

SCHEMA = Path(str(resources.files("langgraph.checkpoint.dynamodb.config"))) / "checkpointer.schema.json"

if __name__ == "__main__":
    SCHEMA.write_text(checkpointer_schema(), encoding="utf-8")
