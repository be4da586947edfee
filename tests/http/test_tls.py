"""A gateway with a certificate: one that is trusted, and one that is not."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from langgraph.checkpoint.dynamodb import CheckpointerError
from tests.support.http_stand_in import http_stand_in


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Give a file with a key, and a certificate that nobody has signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "gateway.pem"
    path.write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_certificates(certificate: Path, ask: Callable[..., Any]) -> None:
    with http_stand_in(certificate) as gateway:
        assert gateway.address.startswith("https://localhost:")
        # It does not get better by waiting.
        with pytest.raises(
            CheckpointerError, match=r"no answer .*CERTIFICATE_VERIFY_FAILED.*TLS certificate"
        ) as caught:
            ask(gateway.address, auth="token-1", retry_seconds=1000.0)
        assert "token-1" not in str(caught.value)
        assert gateway.asked == []
        trusted = ssl.create_default_context(cafile=certificate)
        assert ask(gateway.address, params={"a": 1}, client_options={"verify": trusted}) == {"a": 1}
