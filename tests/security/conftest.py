"""The local cloud of the unit tests: the attacks meet what those meet."""

from tests.unit.localcloud.conftest import cloud, home, make_cloud

__all__ = ["cloud", "home", "make_cloud"]
