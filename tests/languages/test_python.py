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


def test_a_job_that_runs_goes_on_when_its_component_moves(program):
    with program.edited("print('trained')", "import time; time.sleep(300)"):
        program.pulumi("up -y --skip-preview")
        with program.edited("depends_on=[api])", "depends_on=[api], parent=reports)"):
            before = program.pulumi("stack output job")
            program.pulumi("up -y --skip-preview")
            assert program.pulumi("stack output job") == before
            assert not program.last_job().state.terminal


def test_it_goes_down(program):
    story.goes_down(program)
