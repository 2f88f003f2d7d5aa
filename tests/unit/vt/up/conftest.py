"""The local cloud of the tests of `vt local`."""

from tests.unit.vt.local.conftest import cloud, home, make_cloud

__all__ = ["cloud", "home", "make_cloud"]
