"""The local cloud of the tests of `vt import --job`."""

from tests.unit.localcloud.conftest import cloud, home, make_cloud

__all__ = ["cloud", "home", "make_cloud"]
