"""`vt check` as it is called: what is judged, against what, and the exit code."""

import json
import subprocess
import sys

import pytest


def test_a_clean_file_exits_0(project, vt):
    done = vt("check", "jobs/train.yaml")
    assert (done.exit_code, done.stdout) == (0, "1 file, no mistakes.\n")


def test_mistakes_exit_1_and_all_are_told(project, vt):
    (project / "bad.yaml").write_text("useSpot: yes\nscheduling: {timeout: 24h}\n")
    done = vt("check", "bad.yaml", "jobs/train.yaml")
    assert done.exit_code == 1
    assert "bad.yaml:1:1: useSpot" in done.stdout
    assert "bad.yaml:2:23: scheduling.timeout" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("2 files: ")


def test_a_missing_file_exits_2(project, vt):
    done = vt("check", "jobs/train.yaml", "nowhere.yaml")
    assert done.exit_code == 2
    assert done.stderr == "vt check: nowhere.yaml: no such file\n"


def test_without_files_the_folder_jobs_is_checked(project, vt):
    (project / "jobs" / "other.yml").write_text("x: 1\n")
    (project / "jobs" / "notes.txt").write_text("x: 1\n")
    done = vt("check", "--format", "json")
    files = [file["file"] for file in json.loads(done.stdout)["files"]]
    assert files == ["jobs/other.yml", "jobs/train.yaml"]


def test_a_file_named_twice_is_judged_once(project, vt):
    assert vt("check", "jobs", "jobs/train.yaml").stdout.startswith("1 file,")


def test_standard_input_is_a_file_too(project, vt):
    done = vt("check", "-", input="useSpot: true\n")
    assert done.exit_code == 1
    assert done.stdout.startswith("<stdin>:1:1: ")


def test_every_format_tells_the_same_mistakes(project, vt):
    (project / "bad.yaml").write_text("useSpot: yes\nscheduling: {timeout: 24h}\n")
    count = json.loads(vt("check", "bad.yaml", "-f", "json").stdout)["errors"]
    scanned = json.loads(vt("check", "bad.yaml", "-f", "sarif").stdout)["runs"][0]["results"]
    commands = vt("check", "bad.yaml", "-f", "github").stdout.splitlines()
    assert count == len([r for r in scanned if r["level"] == "error"])
    assert count == len([c for c in commands if c.startswith("::error ")])
    assert count >= 2


def test_output_to_a_pipe_has_no_colours(project, vt):
    (project / "bad.yaml").write_text("useSpot: yes\n")
    assert "\x1b" not in vt("check", "bad.yaml").stdout


def test_every_well_formed_reference_passes_without_a_stack(project, vt):
    job = (project / "jobs" / "train.yaml").read_text().replace("trainer", "nobody-knows-this")
    (project / "x.yaml").write_text(job)
    assert vt("check", "x.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("${buckts.data}", "did you mean 'buckets.data'?"),
        ("${buckets.data.mnt}", "did you mean 'buckets.data.mount'?"),
        ("${stack.regoin}", "did you mean 'stack.region'?"),
    ],
)
def test_a_malformed_reference_is_a_mistake_without_a_stack_too(project, vt, wrong, hint):
    job = (project / "jobs" / "train.yaml").read_text().replace("${buckets.data}", wrong)
    (project / "x.yaml").write_text(job)
    done = vt("check", "x.yaml")
    assert done.exit_code == 1
    assert f"(got {wrong}). Hint: {hint}" in done.stdout


def test_a_stack_resolves_references(project, vt):
    assert vt("check", "--stack", "dev").stdout == "1 file, no mistakes.\n"
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text().replace("images.trainer", "images.trainr"))
    assert vt("check", "jobs/train.yaml").exit_code == 0
    done = vt("check", "jobs/train.yaml", "--stack", "dev")
    assert done.exit_code == 1
    assert "did you mean 'images.trainer'?" in done.stdout


def test_a_file_no_job_names_is_judged_against_the_stack_too(project, vt):
    job = (project / "jobs" / "train.yaml").read_text()
    (project / "new.yaml").write_text(job.replace("buckets.data", "buckets.dat"))
    done = vt("check", "new.yaml", "-s", "dev")
    assert done.exit_code == 1
    assert "did you mean 'buckets.data'?" in done.stdout


def test_jobs_of_a_stack_are_judged_against_each_other(project, vt):
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text().replace("/${job.requestId}", ""))
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + "    again: {file: jobs/train.yaml}\n")
    done = vt("check", "-s", "dev", "-f", "json")
    assert done.exit_code == 1
    [file] = json.loads(done.stdout)["files"]
    assert any("again" in finding["message"] for finding in file["findings"])


def test_an_account_that_may_not_write_there_is_a_mistake(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("writes: [artifacts]", "writes: []"))
    done = vt("check", "-s", "dev")
    assert done.exit_code == 1
    assert "jobs/train.yaml:2:" in done.stdout


def test_mistakes_in_the_stack_file_are_told_at_their_place(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("labels:", "lables:"))
    (project / "bad.yaml").write_text("useSpot: yes\n")
    done = vt("check", "bad.yaml", "-s", "dev")
    assert done.exit_code == 1
    assert "Pulumi.dev.yaml:5:3: vertex-training:lables: unknown key" in done.stdout
    assert "bad.yaml:1:1: useSpot" in done.stdout


@pytest.mark.parametrize("name", ["prod", "../dev", ""])
def test_an_unknown_stack_exits_2(project, vt, name):
    done = vt("check", f"--stack={name}") if name else vt("check", "-s", "x")
    assert done.exit_code == 2
    assert "stacks here: dev" in done.stderr


def test_a_stack_needs_a_project(tmp_path, monkeypatch, vt):
    monkeypatch.chdir(tmp_path)
    done = vt("check", "-s", "dev")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no Pulumi.yaml here or above" in done.stderr


def test_rules_are_listed(vt):
    assert "rules\n" in vt("check", "--rules").stdout
    assert json.loads(vt("check", "--rules", "--format", "json").stdout)["rules"]
    assert vt("check", "--rules", "--format", "sarif").exit_code == 2


def test_checking_loads_neither_google_nor_pulumi_nor_pydantic(project):
    code = (
        "import sys\n"
        "from vertex_training_cli.check.command import check\n"
        "check(files=['jobs/train.yaml'])\n"
        "heavy = ('google.cloud.', 'google.protobuf', 'grpc', 'pulumi', 'pydantic', 'rich')\n"
        "print([name for name in sys.modules if name.startswith(heavy)], file=sys.stderr)\n"
    )
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_without_a_stack_any_range_of_its_network_may_be_named(project, vt):
    job = project / "jobs" / "train.yaml"
    peered = "network: ${network.name}\nreservedIpRanges: [%s]\n" + job.read_text()
    job.write_text(peered % '"${network.ranges.workers}"')
    assert vt("check", "jobs/train.yaml").stdout == "1 file, no mistakes.\n"
    job.write_text(peered % '"${network.ranges.Workers}"')
    assert "network.ranges.Workers" in vt("check", "jobs/train.yaml").stdout


@pytest.mark.parametrize(
    ("name", "text", "said", "stack"),
    [
        ("Pulumi.dev.yaml", None, "a stack file of Pulumi", "dev"),
        ("Pulumi.yaml", None, "a project file of Pulumi", "STACK"),
        ("stacks/all.yaml", "config: {gcp:project: p}\n", "a stack file of Pulumi", "STACK"),
        ("x.yaml", "name: x\nruntime: python\nconfig: {}\n", "a project file of Pulumi", "STACK"),
    ],
)
def test_a_file_of_the_engine_is_one_mistake_that_says_how_it_is_checked(
    project, vt, name, text, said, stack
):
    if text:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    before = (project / name).read_text()
    for more in ([], ["--fix"], ["-s", "dev"]):
        done = vt("check", name, *more)
        assert done.exit_code == 1
        assert f"is {said}, not a CustomJob" in done.stdout
        assert f"`vt check --stack {stack}`" in done.stdout
        assert (project / name).read_text() == before
    only = json.loads(vt("check", name, "-f", "json").stdout)["files"][0]["findings"]
    assert [finding["rule"] for finding in only] == ["other-resource"]
