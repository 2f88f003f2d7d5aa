"""The local cloud of the unit tests: the attacks meet what those meet."""

from tests.unit.localcloud.conftest import cloud, home, make_cloud
from tests.unit.localcloud.faults.conftest import front

__all__ = ["cloud", "front", "home", "make_cloud"]
