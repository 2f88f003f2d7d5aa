"""What an object's service returns and refuses, with the emulator's answers written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import CloudError, PluginError, RefusedError
from localgcp.gcp.codec import Asset
from localgcp.gcp.emulator import Emulator
from localgcp.inventory.store import BUCKET
from tests.unit.localcloud.gcp.estate import PROJECT, Estate

OBJECT = "gcp:storage/bucketObject:BucketObject"
# md5 of "hi" is 49f68a5c8493ec2c0bf489821c21fc3b.
MD5 = "SfaKXIST7CwL9ImCHCH8Ow=="
RECORD = {"generation": "7", "md5Hash": MD5, "crc32c": "abc="}
PATH = "storage/v1/b/data/o/a%2Fb%20c.json"
RECORDED = {
    "md5hash": MD5,
    "md5hexhash": "49f68a5c8493ec2c0bf489821c21fc3b",
    "detectMd5hash": MD5,
    "crc32c": "abc=",
    "generation": 7,
    "selfLink": f"https://www.googleapis.com/{PATH}",
    "mediaLink": f"https://storage.googleapis.com/download/{PATH}?generation=7&alt=media",
}


@pytest.fixture
def sent(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was uploaded: bucket, metadata, content. No bucket is called ``gone``."""
    uploads: list[Any] = []

    def upload(_self: Emulator, bucket: str, *rest: Any) -> dict[str, Any] | None:
        uploads.append((bucket, *rest))
        return None if bucket == "gone" else RECORD

    monkeypatch.setattr(Emulator, "of", staticmethod(lambda _cloud: Emulator("http://none")))
    monkeypatch.setattr(Emulator, "upload", upload)
    for name in ("data", "gone"):
        estate.store.put(BUCKET, name, PROJECT, {}, {})
    return uploads


def made(estate: Estate, **inputs: Any) -> dict[str, Any]:
    cloud, kind = estate.kind(OBJECT)
    return kind.make(cloud, PROJECT, "x", inputs)


def test_uploading_to_a_bucket_that_is_gone_is_refused(estate: Estate, sent: list[Any]) -> None:
    with pytest.raises(CloudError) as refused:
        made(estate, bucket="gone", name="a", content="hi")
    assert str(refused.value) == (
        "Error uploading object: googleapi: Error 404: The specified bucket does not exist., "
        "notFound"
    )


def test_an_object_needs_content(estate: Estate, sent: list[Any], tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        made(estate, bucket="data", name="a")
    assert str(refused.value) == "an object has neither `content` nor `source`"
    absent = tmp_path / "absent"
    with pytest.raises(RefusedError) as refused:
        made(estate, bucket="data", name="a", source=Asset("", (("path", str(absent)),)))
    assert str(refused.value) == (
        f"cannot read the source of an object: [Errno 2] No such file or directory: '{absent}'"
    )
    assert sent == []


@pytest.mark.parametrize(
    ("bucket", "name", "said"),
    [
        ("none", "a", "Making: googleapi: Error 404: The specified bucket does not exist., "
         "notFound"),
        *(("data", each, f"Making: googleapi: Error 400: Invalid object name: {each!r}, invalid")
          for each in ("", ".", "..", "a\nb", "a\rb", "a" * 1025, "é" * 513)),
        *(("data", each, f"the local object storage cannot hold an object named {each!r}")
          for each in ("a/../b", "/a", "../a")),
        *(("data", each, None) for each in ("a", "a" * 1024, "é" * 512, "...", "a..b", "a/.b")),
    ],
)  # fmt: skip
def test_the_name_of_an_object_is_one_that_storage_holds(
    estate: Estate, sent: list[Any], bucket: str, name: str, said: str | None
) -> None:
    cloud, kind = estate.kind(OBJECT)
    found = None
    try:
        kind.verify(cloud, PROJECT, {"bucket": bucket, "name": name}, "Making")
    except PluginError as error:
        found = str(error)
    assert found == said


FILE, OTHER = Asset("1", (("path", "a"),)), Asset("2", (("path", "a"),))


@pytest.mark.parametrize(
    ("configured", "bucket", "owner"),
    [
        (PROJECT, "theirs", "local-data"), ("", "theirs", "local-data"), ("acme", "theirs", "acme"),
        (PROJECT, "none", PROJECT), ("", "none", ""),
    ],
)  # fmt: skip
def test_an_object_belongs_to_the_project_of_its_bucket(
    estate: Estate, configured: str, bucket: str, owner: str
) -> None:
    estate.store.put(BUCKET, "theirs", "local-data", {}, {})
    cloud, kind = estate.kind(OBJECT, configured)
    assert kind.project(cloud, {"bucket": bucket}) == owner
    assert kind.id(cloud, {"bucket": bucket, "name": "a/b"}) == f"{bucket}-a/b"


@pytest.mark.parametrize("answer", [None, RECORD, RECORD | {"md5Hash": "AAAA"}])
@pytest.mark.parametrize("by", ["source", "content"])
def test_an_object_is_read_with_what_is_in_the_bucket_now(
    estate: Estate, sent: list[Any], monkeypatch: pytest.MonkeyPatch, answer: Any, by: str
) -> None:
    monkeypatch.setattr(Emulator, "object", lambda _self, *_where: answer)
    kept = {"bucket": "data", "name": "a/b c.json", by: "given", **RECORDED}
    estate.store.put(OBJECT, "data-a/b c.json", PROJECT, {by: "given"}, kept)
    cloud, kind = estate.kind(OBJECT)
    assert kind.read(cloud, "data-other") is None
    found = kind.read(cloud, "data-a/b c.json")
    if answer is None:
        assert found is None
        return
    assert found is not None
    overwritten = answer["md5Hash"] != MD5
    hashes = {"md5hash": "AAAA", "md5hexhash": "000000", "detectMd5hash": "AAAA"}
    source = {"source": Asset("", ())} if overwritten and by == "source" else {}
    assert found.outputs == kept | (hashes if overwritten else {}) | source
    assert (found.id, found.inputs) == ("data-a/b c.json", {by: "given"})
