"""Each environment has its own tests: what is installed decides which of them are collected."""

from __future__ import annotations

import importlib.util

_ENVIRONMENTS = ["aioboto3", "aiobotocore", "boto3"]
# Each brings those behind it as well.
_installed = next(name for name in _ENVIRONMENTS if importlib.util.find_spec(name))

collect_ignore = [f"test_{name}_environment.py" for name in _ENVIRONMENTS if name != _installed]
