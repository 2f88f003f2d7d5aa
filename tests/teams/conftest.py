"""Local clouds shared with the other stories."""

from tests.e2e.conftest import checkout, project

__all__ = ["checkout", "project"]
