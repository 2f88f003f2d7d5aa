"""The local cloud's Cloud Build, for the engine that uses it."""

from tests.unit.localcloud.cloudbuild.conftest import builds, make_builds
from tests.unit.localcloud.conftest import home, make_cloud

__all__ = ["builds", "home", "make_builds", "make_cloud"]
