"""A gateway with a certificate: one that is trusted, and one that is not."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerError
from tests.support.certificates import write_certificate
from tests.support.http_stand_in import http_stand_in


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Give a file with a key, and a certificate that nobody has signed but itself."""
    return write_certificate(tmp_path / "gateway.pem")


def test_certificates(certificate: Path, ask: Callable[..., Any]) -> None:
    with http_stand_in(certificate) as gateway:
        assert gateway.address.startswith("https://localhost:")
        # It does not get better by waiting.
        with pytest.raises(
            CheckpointerError, match=r"no response .*CERTIFICATE_VERIFY_FAILED.*TLS certificate"
        ) as caught:
            ask(gateway.address, auth="token-1", retry_seconds=1000.0)
        assert "token-1" not in str(caught.value)
        assert gateway.asked == []
        trusted = ssl.create_default_context(cafile=certificate)
        assert ask(gateway.address, document={"a": 1}, client_options={"verify": trusted}) == {"a": 1}
