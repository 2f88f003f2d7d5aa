"""Components beside a program's own resources, in TypeScript."""

import pytest

from tests.languages import story

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    story.skip_without("pulumi-language-nodejs", "node", "npm")
    target = tmp_path_factory.mktemp("typescript")
    with story.cloned(story.EXAMPLES / "typescript", "index.ts", target) as found:
        yield found


def test_a_fresh_clone_installs_and_changes_no_file_of_its_author(program):
    said = program.pulumi("preview")
    assert "+ 22 to create" in said
    assert f"{story.PLUGIN} from $PATH" not in said
    assert program.checkout.run("git", "diff", "--name-only").stdout == ""


def test_a_wrong_argument_is_named_by_its_path(program):
    wrong = "deleteAfterDays: 30, softDeleteDays: 3"
    path = "buckets.models.softDeleteDays: "
    story.is_refused(program, "deleteAfterDays: 30", wrong, path)


def test_a_stack_without_config_has_an_empty_one(program):
    line = 'import * as gcp from "@pulumi/gcp";'
    more = '\nimport * as pulumi from "@pulumi/pulumi";'
    more += '\nexport const days = new pulumi.Config().getNumber("days") ?? 7;'
    with program.edited(line, line + more):
        assert "days: 7" in program.pulumi("preview")


def test_it_comes_up_once(program):
    story.comes_up(program)


def test_it_goes_down(program):
    story.goes_down(program)
