"""What a job measured, of which files, what is read again, and what is said of the rest."""

from __future__ import annotations

import gzip

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training_cli.jobs import objects

OUT = "gs://out/a"


def job(output: str = f"{OUT}/", number: int = 7) -> CustomJob:
    return CustomJob(
        name=f"projects/1/locations/r/customJobs/{number}", display_name="fit",
        job_spec={"base_output_directory": {"output_uri_prefix": output}},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "content"),
    [
        (b"", b""),
        (b"plain", b"plain"),
        (gzip.compress(b"packed", mtime=0), b"packed"),
        (gzip.compress(b"packed", mtime=0)[:12], b"p"),
        (b"\x1f\x8bdamaged", b""),
        (b"x" * 8_388_609, b"x" * 8_388_608),
        (gzip.compress(b"x" * 8_388_609), b"x" * 8_388_608),
    ],
    ids=["empty", "plain", "packed", "cut", "damaged", "long", "long and packed"],
)
def test_a_compressed_object_is_unpacked_within_bounds(stored: bytes, content: bytes) -> None:
    assert objects._unpacked(stored) == content
