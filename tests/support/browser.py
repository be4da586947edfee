"""A browser for tests: the system's Chromium, driven by Playwright. A machine without one is excused, but not CI."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright, expect

from tests.conftest import lacks

# As Debian, others, and Google call it.
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# The machine may be busy: five seconds, which is the default, are not enough then.
expect.set_options(timeout=30_000)


@asynccontextmanager
async def browser_or_skip() -> AsyncIterator[Browser]:
    """Run a browser for the duration of the context, or skip the test."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        lacks(f"The page needs a browser, one of {', '.join(_PROGRAMS)} in the PATH: install `chromium`.")
    # Chromium has no sandbox for root, whom CI may be.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield browser
        finally:
            await browser.close()
