"""A browser for tests: the system's Chromium, driven by Playwright, which downloads none here."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator

from playwright.async_api import Browser, async_playwright

# As Debian, others, and Google call it.
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class BrowserUnavailableError(Exception):
    """No browser can be run here; the message says what is missing."""


@contextlib.asynccontextmanager
async def run_browser() -> AsyncIterator[Browser]:
    """Run a browser for the duration of the context.

    Yields:
        The browser; who uses it opens contexts, which share nothing.

    Raises:
        BrowserUnavailableError: There is none.
    """
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        msg = f"The page needs a browser, one of {', '.join(_PROGRAMS)} in the PATH: install the package `chromium`."
        raise BrowserUnavailableError(msg)
    # Chromium has no sandbox for root, whom CI may be.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield browser
        finally:
            await browser.close()
