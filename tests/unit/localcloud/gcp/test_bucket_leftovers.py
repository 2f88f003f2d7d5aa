"""A bucket that is deleted leaves nothing in the folder of the emulator."""

from __future__ import annotations

from localgcp.gcp.codec import plain
from tests.unit.localcloud.gcp.harness import Plugin, refused
from tests.unit.localcloud.gcp.test_storage import BUCKET, cloud, emulator, home

__all__ = ["cloud", "emulator", "home"]


def test_a_bucket_is_imported_by_its_name_with_or_without_its_project(cloud: Plugin) -> None:
    inputs = {"location": "us-central1", "name": "kept-p1", "forceDestroy": True}
    id_, outputs = cloud.create(BUCKET, inputs)
    found = [cloud.read(BUCKET, given).id for given in ("kept-p1", "local-p1/kept-p1")]
    elsewhere = refused(lambda: cloud.read(BUCKET, "acme/kept-p1"))
    cloud.delete(BUCKET, id_, plain(outputs))
    assert found == [id_, id_]
    assert "acme" in elsewhere
