"""A local project with resources around its jobs."""

from __future__ import annotations

import pytest

from tests.unit.localcloud.conftest import Cloud
from tests.unit.localcloud.vertex.estate import Estate


@pytest.fixture
def estate(cloud: Cloud) -> Estate:
    """Makes resources in the cloud of this test."""
    return Estate(cloud.home.root)
