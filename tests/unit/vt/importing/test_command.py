"""What runs elsewhere becomes a job of a stack: read and never run, shown before it is written."""

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training_cli.cli import app

STACK = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
  vertex-training:buckets:
    data: {}  # what is learned from
    artifacts: {}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts]}
"""
YAML = """\
serviceAccount: runner@acme-ml.iam.gserviceaccount.com
workerPoolSpecs:
  machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec:
    imageUri: us-docker.pkg.dev/acme-ml/images/x:1
    args: [--train=gs://acme-in/a, --output-dir, /gcs/acme-out/b]
    env: [{name: HF_TOKEN, value: <YOUR_HF_TOKEN>}]
"""
SDK = """
import datetime
from google.cloud import aiplatform
from google.cloud.aiplatform import gapic as aip

BUCKET = "gs://acme-out"
RUN = datetime.datetime.now().strftime("%Y%m%d")
aiplatform.init(project="acme-ml", staging_bucket=BUCKET)
machine = "g2-standard-8"
pools = [{
    "machine_spec": {
        "machine_type": machine, "accelerator_type": aip.AcceleratorType.NVIDIA_L4,
        "accelerator_count": 1,
    },
    "replica_count": 1,
    "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/images/x:1"},
}]


def main():
    job = aiplatform.CustomJob(
        display_name="tune " + RUN, worker_pool_specs=pools, labels={"run": "mine"}
    )
    job.submit(timeout=3600, scheduling_strategy=aip.Scheduling.Strategy.SPOT,
               base_output_dir=f"{BUCKET}/{RUN}")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "jobs").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def vt(project):
    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["import", *map(str, arguments)])
        assert done.exit_code == code, done.output
        return done

    return run


def files(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def imported(root, name):
    return yaml.safe_load((root / "jobs" / f"{name}.yaml").read_text())


def test_an_import_twice_makes_two_jobs_and_overwrites_nothing(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML)
    vt(tmp_path / "x.yaml", "--write")
    first = (project / "jobs" / "x.yaml").read_bytes()
    vt(tmp_path / "x.yaml", "--write")
    assert (project / "jobs" / "x.yaml").read_bytes() == first
    assert (project / "jobs" / "x-2.yaml").exists()


def test_a_script_that_is_not_here_is_told_and_a_placeholder_fails_loudly(project, vt, tmp_path):
    code = (
        "from google.cloud import aiplatform\n"
        "aiplatform.CustomJob.from_local_script(display_name='far', "
        "script_path='../../secret.py',\n"
        " container_uri='us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest').run()\n"
    )
    (tmp_path / "secret.py").write_text("TOKEN = 'x'\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "go.py").write_text(code)
    done = vt(tmp_path / "a" / "b" / "go.py", "--write")
    assert "the script ../../secret.py does not exist beside the source" in done.stderr
    assert "SystemExit" in (project / "jobs/far/secret.py").read_text()


def test_a_script_of_others_acts_on_no_terminal_and_shows_no_secret(project, vt, tmp_path):
    secret = "hf_" + "aB3" * 12
    (tmp_path / "train.py").write_text(f"TOKEN = '{secret}'\nprint('\x1b]0;owned\x07')\n")
    (tmp_path / "go.py").write_text(
        "from google.cloud import aiplatform\n"
        "aiplatform.CustomJob.from_local_script(display_name='far', script_path='train.py',"
        " container_uri='us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest').run()\n"
    )
    done = vt(tmp_path / "go.py", code=1)
    assert secret not in done.output
    assert "\x1b" not in done.output
    assert "contains a likely secret" in done.stderr
    assert "allowedSecrets" in done.stdout + done.stderr


def test_a_page_is_imported_block_by_block(project, vt, tmp_path):
    page = f"# Guide\n\n```yaml\n{YAML}```\n\n~~~python\n{SDK}~~~\n"
    page += "\n```python\nthis is no code\n```\n"
    (tmp_path / "guide.md").write_text(page)
    vt(tmp_path / "guide.md", "--write")
    assert imported(project, "tune")
    assert imported(project, "guide")


def test_values_nested_in_one_another_are_bounded_as_well(project, vt, tmp_path):
    nest = "d = {'machine_spec': {}}\n" + "d = {'machine_spec': d, 'disk_spec': d}\n" * 64
    code = f"{nest}from google.cloud import aiplatform\n"
    code += "aiplatform.CustomJob(display_name='x', worker_pool_specs=[d])\n"
    (tmp_path / "nest.py").write_text(code)
    assert "too large for a job" in vt(tmp_path / "nest.py", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "",
            "requires exactly one source: a file, --job ID of an existing job, or --run COMMAND",
        ),
        ("two.sh --run 1", "requires exactly one source"),
        ("two.sh --no-isolation", "--no-isolation requires --run COMMAND"),
        ("gone.py", "No such file"),
        ("two.sh --job c", "the source has no job 'c'. Hint: choose one of: a, b"),
        ("two.sh --name x", "--name requires a source with one job; this source has 2"),
    ],
)
def test_wrong_options_are_refused(project, vt, arguments, words):
    line = (
        "gcloud ai custom-jobs create --worker-pool-spec=container-image-uri=i/a:1 --display-name="
    )
    (project / "two.sh").write_text(f"{line}a\n{line}b\n")
    assert words in vt(*arguments.split(), code=2).stderr


def test_job_that_ran_needs_a_project_and_up_a_stack(vt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no Pulumi.yaml in this folder or above" in vt("--job", "5", code=2).stderr
    (tmp_path / "x.yaml").write_text(YAML)
    assert "--up requires a stack" in vt(tmp_path / "x.yaml", "--up", code=2).stderr


def test_first_of_two_jobs_of_one_name_is_taken(project, vt):
    line = "gcloud ai custom-jobs create --display-name=a --worker-pool-spec=container-image-uri=i/"
    (project / "two.sh").write_text(f"{line}a:1\n{line}b:1\n")
    done = vt("two.sh", "--job", "a", code=1)
    assert "the source has 1 more jobs named a, which are not imported" in done.stderr
    assert "i/a:1" in done.stdout


def test_a_name_is_one_that_a_stack_file_takes(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML)
    assert "Hint: write big-job" in vt(tmp_path / "x.yaml", "--name", "Big Job", code=2).stderr
    vt(tmp_path / "x.yaml", "--name", "big-job", "--write")
    assert imported(project, "big-job")


READS = """
from google.cloud import aiplatform
command = ["python3", "/gcs/acme-in/scripts/train.py", "--data", "/gcs/acme-in/data/rows.bin"]
pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/images/x:1", "command": command}}
aiplatform.CustomJob(display_name="reads", worker_pool_specs=[pool]).submit()
"""


def test_what_a_job_reads_is_taken_from_beside_the_source(project, vt, tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text("print('trained')")
    (tmp_path / "rows.bin").write_bytes(b"\xff\x00rows")
    (tmp_path / "reads.py").write_text(READS)
    done = vt(tmp_path / "reads.py", "--write")
    assert "a copy of 6 bytes" in done.stdout
    assert (project / "jobs/data/acme-in/data/rows.bin").read_bytes() == b"\xff\x00rows"
    config = yaml.safe_load((project / "Pulumi.local.yaml").read_text())["config"]
    assert config["vertex-training:buckets"]["acme-in"]["objects"] == {
        "scripts/train.py": "jobs/data/acme-in/scripts/train.py",
        "data/rows.bin": "jobs/data/acme-in/data/rows.bin",
    }


def test_a_file_of_the_checkout_is_named_and_not_copied(project, vt):
    (project / "legacy" / "scripts").mkdir(parents=True)
    (project / "legacy" / "scripts" / "train.py").write_text("print('trained')")
    (project / "legacy" / "reads.py").write_text(READS)
    vt(project / "legacy" / "reads.py", "--write")
    text = (project / "Pulumi.local.yaml").read_text()
    assert "scripts/train.py: legacy/scripts/train.py" in text
    assert not (project / "jobs" / "data").exists()


def test_a_job_runs_at_once_in_the_local_cloud_only(project, vt, tmp_path):
    (project / "Pulumi.dev.yaml").write_text(STACK.replace("local-demo", "acme-demo"))
    (tmp_path / "x.yaml").write_text(YAML)
    before = files(project)
    told = vt(tmp_path / "x.yaml", "--stack", "dev", "--up", code=2).stderr
    assert "dev is a stack of Google Cloud" in told
    assert files(project) == before


def test_a_job_with_mistakes_is_neither_written_nor_run_by_up(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML.replace("replicaCount: 1", "replicaCount: 4"))
    before = files(project)
    assert "Fix the mistakes first" in vt(tmp_path / "x.yaml", "--up", code=1).stderr
    assert files(project) == before


SECRET = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "shape",
    [
        f"env: {{name: WANDB_API_KEY, value: {SECRET}}}",
        f"env: {{WANDB_API_KEY: {SECRET}}}",
        f"env: [WANDB_API_KEY={SECRET}]",
        f"env: [{{Name: WANDB_API_KEY, Value: {SECRET}}}]",
        f'args: "--wandb_api_key={SECRET}"',
        f"args: [[--wandb_api_key={SECRET}]]",
    ],
)
def test_a_secret_is_left_out_whatever_its_shape_is(project, vt, tmp_path, shape):
    text = YAML.partition("    args:")[0] + f"    {shape}\n"
    (tmp_path / "x.yaml").write_text(text)
    done = CliRunner().invoke(app, ["import", str(tmp_path / "x.yaml"), "--write"])
    assert SECRET not in done.output
    assert all(SECRET.encode() not in data for data in files(project).values())


def test_one_job_of_several_is_chosen_by_its_name(project, vt, tmp_path):
    page = f"# Guide\n\n```yaml\n{YAML}```\n\n```python\n{SDK}```\n\n```dockerfile\nFROM x\n```\n"
    (tmp_path / "guide.md").write_text(page)
    told = vt(tmp_path / "guide.md", "--job", "tune", "--write").stderr
    assert not (project / "jobs/guide.yaml").exists()
    assert imported(project, "tune")
    assert "are not imported: guide" in told
    assert "blocks without a job are at lines" in told
    assert "choose one of: " in vt(tmp_path / "guide.md", "--job", "none", code=2).stderr


def test_computed_value_is_named_with_its_place_and_the_command_that_records_it(
    project, vt, tmp_path
):
    code = SDK.replace('"us-docker.pkg.dev/acme-ml/images/x:1"', "image")
    (tmp_path / "submit.py").write_text(code)
    told = vt(tmp_path / "submit.py", code=1).stderr
    assert "tune: replace these placeholders by values: <YOUR_IMAGE>" in told
    assert "<YOUR_IMAGE> is computed: `image` (submit.py, line 16)" in told
    assert f"`vt import --run 'python {tmp_path}/submit.py'` records them" in told
