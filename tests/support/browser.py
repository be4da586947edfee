"""A browser for tests: a machine without one is excused, but not CI."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, expect

from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tools.browser import BrowserUnavailableError, run_browser

# The machine may be busy: five seconds, which is the default, are not enough then.
expect.set_options(timeout=30_000)


@asynccontextmanager
async def browser_or_skip() -> AsyncIterator[Browser]:
    """Run a browser for the duration of the context, or skip the test."""
    try:
        async with run_browser() as found:
            yield found
    except BrowserUnavailableError as error:
        if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
