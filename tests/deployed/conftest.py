"""What the tests of deployed programs share with those of the templates."""

from tests.infra.conftest import emulator

__all__ = ["emulator"]
