"""The local cloud of the tests of ``localcloud``."""

from tests.unit.localcloud.conftest import cloud, cloud_with_storage, home, make_cloud

__all__ = ["cloud", "cloud_with_storage", "home", "make_cloud"]
