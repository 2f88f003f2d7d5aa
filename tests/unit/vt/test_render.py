"""`vt render`: the exact request, equal bytes for equal input."""

import json


def test_a_rendered_request_is_a_job_file(project, vt):
    rendered = vt("render", "train", "-s", "dev").stdout
    (project / "again.yaml").write_text(rendered)
    again = vt("render", "again.yaml", "-s", "dev")
    assert again.stdout == rendered


def test_a_file_means_the_job_that_has_it(project, vt):
    by_name = vt("render", "train", "-s", "dev").stdout
    assert vt("render", "jobs/train.yaml", "-s", "dev").stdout == by_name


def test_mistakes_exit_1_and_nothing_is_printed_as_a_request(project, vt):
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text() + "useSpot: true\n")
    done = vt("render", "train", "-s", "dev")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "jobs/train.yaml:9:1: useSpot" in done.stderr


def test_an_unknown_job_or_stack_exits_2(project, vt):
    done = vt("render", "trian", "-s", "dev")
    assert done.exit_code == 2
    assert "did you mean 'train'?" in done.stderr
    assert vt("render", "train", "-s", "prod").exit_code == 2


def test_a_file_of_several_jobs_must_be_named(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + "    again: {file: jobs/train.yaml, run: 2}\n")
    assert "one of the names train, again" in vt("render", "jobs/train.yaml", "-s", "dev").stderr
    assert vt("render", "again", "-s", "dev").exit_code == 0


def test_outside_of_a_project_there_is_no_stack(vt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = vt("render", "train", "-s", "dev")
    assert (done.exit_code, done.stdout, done.stderr) == (
        2, "", (
            "vt render: no Pulumi.yaml in this folder or above: a stack needs a Pulumi "
            "project\n"
        ),
    )  # fmt: skip


def test_what_the_stack_fills_in_is_in_the_request_and_named_beside_it(project, vt):
    job = project / "jobs" / "train.yaml"
    lines = job.read_text().splitlines(keepends=True)
    job.write_text("".join(line for line in lines if not line.startswith("serviceAccount")))
    assert "serviceAccount is missing" in vt("render", "train", "-s", "dev").stderr
    stack_file = project / "Pulumi.dev.yaml"
    given = '  vertex-training:jobDefaults: {serviceAccount: "${serviceAccounts.trainer}"}\n'
    stack_file.write_text(stack_file.read_text() + given)
    done = vt("render", "train", "-s", "dev")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["jobSpec"]["serviceAccount"].startswith("trainer-dev@")
    assert "set by jobDefaults: serviceAccount" in done.stderr
