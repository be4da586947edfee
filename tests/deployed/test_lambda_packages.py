"""The packages that `make` builds for Lambda: each has all that its handler loads, and nothing has to be compiled."""

import importlib.util
import platform
import sys
import zipfile
from pathlib import Path

import pytest

from tests.deployed.lambda_environment import event_of
from tests.infra.rendering import INFRA
from tests.infra.stacks import GATEWAYS
from tests.support.programs import ran

VARIABLES: dict[str, str] = GATEWAYS["Lambda"].properties("Gateway")["Environment"]["Variables"]
EVENT = event_of("GET", "/health", {}, b"")
# What is done with each, in which the saver's metrics may be printed first.
PROGRAMS = {
    "LAMBDA_PACKAGE": "import handler; print(handler.__file__)",
    "GATEWAY_PACKAGE": f"""
import cryptography.hazmat.primitives.asymmetric.rsa  # With which it verifies tokens.
import numpy  # With which it compares embeddings.
from langgraph.checkpoint.dynamodb.gateway.aws_lambda import handler
print(handler({EVENT!r}, None)["statusCode"])
""",
}


@pytest.mark.search
@pytest.mark.skipif(sys.platform != "linux", reason="what is built for Lambda is imported, which takes Linux")
def test_packages_have_all_that_their_handlers_load(tmp_path: Path) -> None:
    """They are built for the Python of the tests, and read by another user than the one that built them."""
    variables = [
        *(f"{name}={tmp_path / name}" for name in PROGRAMS),
        f"LAMBDA_PYTHON={sys.version_info.major}.{sys.version_info.minor}",
        f"LAMBDA_PLATFORM={platform.machine()}-manylinux_2_28",
        f"LAMBDA_COMPILER={sys.executable}",
    ]
    files = [f"{tmp_path / name}.zip" for name in PROGRAMS]
    made = ("make", "--no-print-directory", "--assume-old", ".venv/.installed", *files, *variables)
    done = ran(*made, cwd=INFRA.parent, umask=0o077)
    assert "each cold start will" not in done.stdout
    said = []
    for name, program in PROGRAMS.items():
        unpacked = tmp_path / f"{name} unpacked"
        with zipfile.ZipFile(tmp_path / f"{name}.zip") as archive:
            assert all(each.external_attr >> 16 & 0o004 for each in archive.infolist())
            archive.extractall(unpacked)
        sources = [each for each in unpacked.rglob("*.py") if each.stat().st_size]
        compiled = [Path(importlib.util.cache_from_source(str(each))) for each in sources]
        # The second word says that the sources are not looked at.
        assert {each.read_bytes()[4:8] for each in compiled} == {b"\x01\0\0\0"}
        only_this = (
            "import sys; sys.path = ['.'] + [each for each in sys.path if 'site-packages' not in each]"
        )
        own = {"AWS_DEFAULT_REGION": "us-east-1", "TABLE_NAME": "threads", "RETRY_SECONDS": "5"}
        isolated = (sys.executable, "-I", "-c", f"{only_this}\n{program}")
        served = ran(*isolated, cwd=unpacked, env={**VARIABLES, **own})
        said.append(served.stdout.splitlines()[-1])
    assert said == [str(tmp_path / "LAMBDA_PACKAGE unpacked" / "handler.py"), "200"]
