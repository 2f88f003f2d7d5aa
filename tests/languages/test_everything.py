"""All components in one program: a reserved GPU, an interface into a network, another environment.

In YAML, whose host passes on what the program says and adds nothing.
"""

from pathlib import Path

import pytest

from tests.languages import story

pytestmark = pytest.mark.timeout(600)

PROGRAM = Path(__file__).with_name("everything")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    story.skip_without("pulumi-language-yaml")
    target = tmp_path_factory.mktemp("everything")
    with story.running(PROGRAM, "Pulumi.yaml", target) as found:
        found.pulumi(f'package add "$(command -v {story.PLUGIN})"')
        yield found


def test_in_an_empty_project_all_comes_up_in_order(program):
    said = program.pulumi("up -y --skip-preview")
    assert "job hello: SUCCEEDED" in said
    assert "reservation gpus: 1 x a2-highgpu-1g in us-central1-a: $3.67 an hour" in said
    program.pulumi("up -y --skip-preview --expect-no-changes")


def test_a_mistake_in_a_job_file_has_its_line(program):
    with program.edited("file: jobs/plain.yaml", "file: jobs/wrong.yaml"):
        text = (program.file.parent / "jobs/plain.yaml").read_text()
        wrong = program.file.parent / "jobs/wrong.yaml"
        wrong.write_text(text.replace("n1-standard-4", "n1-standard-5"))
        said = program.pulumi("preview", expect=None)
    assert "TrainingEnvironment 'other': 1 mistake; the component declared no resource." in said
    assert "jobs/wrong.yaml:2:" in said
    assert "Traceback" not in said


def test_two_environments_go_down(program):
    program.pulumi("destroy -y")
    assert [program.checkout.left(each) for each in ("local-training", "local-nlp")] == [{}, {}]
