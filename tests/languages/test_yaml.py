"""Components beside a program's own resources, in YAML."""

import pytest

from tests.languages import story

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    story.skip_without("pulumi-language-yaml")
    target = tmp_path_factory.mktemp("yaml")
    with story.cloned(story.EXAMPLES / "yaml", "Pulumi.yaml", target) as found:
        yield found


def test_a_fresh_clone_runs_the_plugin_of_its_folder(program):
    said = program.pulumi("preview")
    assert "+ 22 to create" in said
    assert f"{story.PLUGIN} from $PATH" not in said


def test_a_wrong_argument_is_named_by_its_path(program):
    wrong = "deleteAfterDays: 30, softDeleteDays: 3"
    path = "buckets.models.softDeleteDays: "
    story.is_refused(program, "deleteAfterDays: 30", wrong, path)


def test_a_secret_is_refused_and_not_shown(program):
    with program.edited("{project: local-training, writes", "{project: '${token}', writes"):
        text = program.file.read_text()
        program.file.write_text(f"{text}\nconfig: {{token: {{type: string, secret: true}}}}\n")
        program.pulumi("config set --secret token hunter2")
        said = program.pulumi("preview", expect=None)
    assert "project: this value is secret, but names, requests and the state would show it" in said
    assert "hunter2" not in said


def test_it_comes_up_once(program):
    story.comes_up(program)


def test_up_waits_for_a_job_that_says_so_and_fails_with_it(program):
    text = program.file.read_text()
    with program.edited(
        "      controlBucket:", "      wait: succeeded\n      run: 2\n      controlBucket:"
    ):
        said = program.pulumi("up -y --skip-preview")
        assert "job hello: SUCCEEDED" in said
    with program.edited(
        "      controlBucket:", "      wait: succeeded\n      run: 3\n      controlBucket:"
    ):
        said = program.file.read_text().replace("print('trained')", "raise SystemExit(3)")
        program.file.write_text(said)
        said = program.pulumi("up -y --skip-preview", expect=None)
    assert "error: job 'hello' is FAILED" in said
    assert "TrainingJob resource 'hello' has a problem: a job did not reach the state" in said
    assert "Traceback" not in said
    assert program.file.read_text() == text


def test_it_goes_down(program):
    story.goes_down(program)
