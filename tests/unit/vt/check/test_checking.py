"""Which files of a folder are checked."""

import pytest

from vertex_training.errors import CheckUnavailableError
from vertex_training_cli.check import checking


def test_json_that_cannot_be_read_as_text_is_no_job_file(tmp_path):
    (tmp_path / "data.json").write_bytes(bytes(range(256)))
    (tmp_path / "a.yml").write_text("{}")
    assert checking.files_of([str(tmp_path)]) == [str(tmp_path / "a.yml")]


STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:buckets: {out: {}}
  vertex-training:serviceAccounts: {trainer: {writes: [out]}}
  vertex-training:deployers: ["serviceAccount:ci@acme-ml-dev.iam.gserviceaccount.com"]
  vertex-training:jobDefaults:
    serviceAccount: ${serviceAccounts.trainer}
    timeout: 600s
    outputDirectory: ${buckets.out}/${job.requestId}
  vertex-training:jobs: {a: {file: a.yaml}, b: {file: b.yaml}}
"""
JOB = """\
workerPoolSpecs:
  - machineSpec: {machineType: MACHINE}
    containerSpec: {imageUri: us-docker.pkg.dev/acme-ml/x/y:1, command: [sleep, "9"]}
"""


def reports(root, stack=STACK, **jobs):
    """What `vt check --stack dev` says of a stack and its job files."""
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.dev.yaml").write_text(stack)
    for name in ("a", "b"):
        machine = jobs.get(name, "n1-standard-4")
        (root / f"{name}.yaml").write_text(JOB.replace("MACHINE", machine))
    found = checking.check_in_stack([], root, "dev")
    return [
        (each.level, f"{report.file}:{each.line}:{each.column}: {each.message}")
        for report in found
        for each in report.findings
    ]


def test_of_a_stack_file_that_is_no_yaml_its_mistake_is_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = reports(tmp_path, "config: [", a="n1-standard-5")
    assert [(level, line.partition(":")[0]) for level, line in told] == [
        ("error", "Pulumi.dev.yaml")
    ]


def test_a_job_file_that_is_missing_is_told_by_the_stack_file_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = STACK.replace("{writes: [out]}", "{writes: [outt]}").replace("a.yaml", "none.yaml")
    lines = [line for _, line in reports(tmp_path, wrong, b="n1-standard-5")]
    assert {line.partition(":")[0] for line in lines} == {"Pulumi.dev.yaml", "b.yaml"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (STACK.replace("timeout: 600s", "timeout: 10m"), "jobDefaults.timeout"),
        (STACK + "  vertex-training:rules: {machine-type: louder}\n", "rules.machine-type"),
    ],
)
def test_job_files_are_not_judged_by_defaults_or_levels_that_are_wrong(
    tmp_path, monkeypatch, wrong, named
):
    monkeypatch.chdir(tmp_path)
    lines = [line for _, line in reports(tmp_path, wrong, a="n1-standard-5")]
    assert len(lines) == 1
    assert named in lines[0]


def test_a_link_out_of_the_checkout_is_not_read_and_one_that_lies_in_none_is(tmp_path, monkeypatch):
    (tmp_path / "checkout" / "jobs").mkdir(parents=True)
    (tmp_path / "checkout" / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "x.yaml").write_text("a: 1")
    for link in ("own.yaml", "checkout/jobs/x.yaml"):
        (tmp_path / link).symlink_to(tmp_path / "x.yaml")
    assert checking.read(str(tmp_path / "own.yaml")) == b"a: 1"
    monkeypatch.chdir(tmp_path / "checkout")
    with pytest.raises(CheckUnavailableError) as refused:
        checking.read("jobs/x.yaml")
    assert str(refused.value) == "jobs/x.yaml: jobs/x.yaml is a link out of its folder"


def test_what_would_surprise_the_owner_of_a_stack_is_told_before_a_preview(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    public = "  vertex-training:network: {mode: psc, subnet: {range: 8.8.8.0/26}}\n"
    [(level, line)] = reports(tmp_path, STACK + public)
    assert level == "warning"
    assert line.startswith(
        "Pulumi.dev.yaml:13:49: vertex-training:network.subnet.range: are public"
    )
