"""Each environment has its own tests: what is installed decides which of them are collected."""

from __future__ import annotations

import importlib.util

collect_ignore = [
    "test_aiobotocore_environment.py"
    if importlib.util.find_spec("aioboto3")
    else "test_aioboto3_environment.py",
]
