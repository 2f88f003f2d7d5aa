"""A build of an image that is killed leaves nothing in the way of the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localgcp.containers import registry
from tests.containers.build_kills import BASE, POINTS, SAMPLE, Builds, Point, builds
from tests.unit.localcloud.conftest import wait_until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def made(registry_program: str, buildah: str, base_image: str) -> Iterator[Builds]:
    with builds(registry_program, registry.stand_in_folder()) as found:
        yield found


@pytest.mark.parametrize("point", SAMPLE, ids=str)
def test_killed_at_a_step_the_next_build_pins_one_digest_and_nothing_is_left(
    made: Builds, point: Point
) -> None:
    assert made.trial(point) == ""


@pytest.mark.parametrize(
    ("dockerfile", "options", "texts"),
    [
        (f"FROM {BASE}\nRUN echo sum $((40 + 2)) && exit 3\n", (),
         ("  | sum 42", "ended with exit code 3")),
        ("FROM localhost:1/nothing:v1\n", (),
         ("localhost:1/nothing:v1", "the build of buildah ended with exit code")),
        (f"FROM {BASE}\nRUN sleep 4711\n", ("--timeout", "10s"),
         ("was cancelled after 10 s",)),
    ],
)  # fmt: skip
def test_a_build_that_fails_or_takes_too_long_says_why_and_leaves_nothing(
    made: Builds, dockerfile: str, options: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    file = made.source.with_name("Dockerfile")
    good = file.read_text()
    file.write_text(dockerfile)
    try:
        printed = made.build(*options)
    finally:
        file.write_text(good)
    assert [text for text in texts if text not in printed] == []
    assert made.stack.read_bytes() == made.new
    wait_until(lambda: not made.processes())
    assert made.left() == []


def test_the_points_have_names_of_their_own_and_the_sample_is_of_them() -> None:
    assert len(SAMPLE) == 4
    assert len({str(point) for point in POINTS}) == len(POINTS) == 28
