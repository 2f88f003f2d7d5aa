"""Fixtures of the unit tests' local cloud, which the security tests attack."""

import pytest
from google.cloud import storage

from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.proxy import StorageFront
from tests.unit.localcloud.conftest import cloud, home, make_cloud
from tests.unit.localcloud.faults.conftest import front

__all__ = ["cloud", "front", "home", "make_cloud"]


@pytest.fixture
def box(front: StorageFront) -> storage.Bucket:
    """Return a bucket with a secret in it."""
    made = storage_client(front.url).create_bucket("box")
    made.blob("inside").upload_from_string(b"secret")
    return made
