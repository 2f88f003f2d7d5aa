"""Components beside a program's own resources, in Python."""

import pytest

from tests.languages import story

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    with story.running(
        story.EXAMPLES / "python", "__main__.py", tmp_path_factory.mktemp("python")
    ) as found:
        yield found


def test_a_wrong_argument_is_named_by_its_path(program):
    wrong = '"delete_after_days": 30, "soft_delete_days": 3'
    path = "buckets.models.soft_delete_days: "
    story.is_refused(program, '"delete_after_days": 30', wrong, path)


def test_it_comes_up_once(program):
    story.comes_up(program)


def test_it_goes_down(program):
    story.goes_down(program)
