"""What runs elsewhere becomes a job of a stack: read and never run, shown before it is written."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from vt.cli import app

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


def main(machine: str = "g2-standard-8"):
    flags = {"epochs": 3, "rate": 0.1}
    pools = [{
        "machine_spec": {"machine_type": machine},
        "replica_count": 1,
        "container_spec": {
            "image_uri": "us-docker.pkg.dev/acme-ml/images/{}:1".format("x"),
            "args": [f"--{key}={value}" for key, value in flags.items()],
        },
    }]
    pools[0]["machine_spec"]["accelerator_type"] = aip.AcceleratorType.NVIDIA_L4
    pools[0]["machine_spec"]["accelerator_count"] = 1
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


def test_a_gcloud_file_becomes_a_job_file_an_account_buckets_and_an_entry(project, vt, tmp_path):
    (tmp_path / "vertex_config.yaml").write_text(YAML)
    done = vt(tmp_path / "vertex_config.yaml", "--write")
    job = imported(project, "vertex-config")
    assert job["serviceAccount"] == "${serviceAccounts.runner}"
    task = job["workerPoolSpecs"]["containerSpec"]
    assert task["args"] == [
        "--train=${buckets.acme-in}/a",
        "--output-dir",
        "${buckets.acme-out.mount}/b",
    ]
    assert task["env"] == [{"name": "HF_TOKEN", "value": "${secrets.hf-token}"}]
    text = (project / "Pulumi.local.yaml").read_text()
    assert "# what is learned from" in text
    config = yaml.safe_load(text)["config"]
    runner = config["vertex-training:serviceAccounts"]["runner"]
    assert runner == {"reads": ["acme-in"], "writes": ["acme-out"], "secrets": ["hf-token"]}
    assert config["vertex-training:jobs"] == {"vertex-config": {"file": "jobs/vertex-config.yaml"}}
    assert "copy what the job reads" in done.stderr
    assert CliRunner().invoke(app, ["check", "--stack", "local"]).exit_code == 0


def test_without_being_asked_it_writes_nothing_and_shows_everything(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML)
    before = files(project)
    done = vt(tmp_path / "x.yaml")
    assert files(project) == before
    assert "+++ jobs/x.yaml" in done.stdout
    assert (
        "+    x: {file: jobs/x.yaml}" in done.stdout
        or "+  vertex-training:jobs: {x:" in done.stdout
    )
    assert "Nothing is written" in done.stderr


def test_an_import_twice_makes_two_jobs_and_overwrites_nothing(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML)
    vt(tmp_path / "x.yaml", "--write")
    first = (project / "jobs" / "x.yaml").read_bytes()
    vt(tmp_path / "x.yaml", "--write")
    assert (project / "jobs" / "x.yaml").read_bytes() == first
    assert (project / "jobs" / "x-2.yaml").exists()


def test_code_with_the_client_is_read(project, vt, tmp_path):
    (tmp_path / "submit.py").write_text(SDK)
    vt(tmp_path / "submit.py", "--write")
    message = imported(project, "tune")
    assert message["labels"] == {"run": "mine"}
    spec = message["jobSpec"]
    assert spec["scheduling"] == {"strategy": "SPOT", "timeout": "3600s"}
    prefix = spec["baseOutputDirectory"]["outputUriPrefix"]
    assert prefix == "${buckets.acme-out}/${job.requestId}"
    [pool] = spec["workerPoolSpecs"]
    assert pool["machineSpec"]["acceleratorType"] == "NVIDIA_L4"
    assert pool["containerSpec"]["args"] == ["--epochs=3", "--rate=0.1"]


def test_no_line_of_the_source_is_run(project, vt, tmp_path):
    touched = tmp_path / "touched"
    evil = f"import pathlib\npathlib.Path({str(touched)!r}).write_text('x')\n"
    evil += f"NAME = __import__('os').system('touch {touched}')\n"
    (tmp_path / "evil.py").write_text(evil + SDK)
    vt(tmp_path / "evil.py")
    assert not touched.exists()


def test_a_training_job_in_a_notebook_brings_the_script_that_a_cell_writes(project, vt, tmp_path):
    cells = [
        "!pip install google-cloud-aiplatform",
        "%%writefile trainer/train_nn.py\nprint('trained')\n",
        "from google.cloud import aiplatform\n%matplotlib inline\n"
        "job = aiplatform.CustomTrainingJob(display_name='nn', script_path='trainer/train_nn.py',\n"
        "  container_uri='us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest',\n"
        "  requirements=['numpy==1.26.4'])\n",
        "model = job.run(args=['--epochs=1'], replica_count=3, machine_type='n1-standard-8',\n"
        "  accelerator_type='NVIDIA_TESLA_T4', accelerator_count=1, model_display_name='m')\n",
    ]
    book = {"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}
    (tmp_path / "book.ipynb").write_text(json.dumps(book))
    done = vt(tmp_path / "book.ipynb", "--write")
    assert (project / "jobs/nn/train_nn.py").read_text() == "print('trained')\n"
    assert (project / "jobs/nn/train_nn.requirements.txt").read_text() == "numpy==1.26.4\n"
    pools = imported(project, "nn")["workerPoolSpecs"]
    assert [pool["replicaCount"] for pool in pools] == [1, 2]
    assert pools[0]["pythonPackageSpec"]["pythonModule"] == "train_nn"
    assert pools[0]["pythonPackageSpec"]["packageUris"] == ["${packages.nn}"]
    assert "model_display_name is left out" in done.stderr


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
    assert "the script ../../secret.py is not here" in done.stderr
    assert "SystemExit" in (project / "jobs/far/secret.py").read_text()


def test_a_script_of_others_acts_on_no_terminal_and_shows_no_secret(project, vt, tmp_path):
    secret = "hf_" + "aB3" * 12
    (tmp_path / "train.py").write_text(f"TOKEN = '{secret}'\nprint('\x1b]0;owned\x07')\n")
    (tmp_path / "go.py").write_text(
        "from google.cloud import aiplatform\n"
        "aiplatform.CustomJob.from_local_script(display_name='far', script_path='train.py',"
        " container_uri='us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest').run()\n"
    )
    done = vt(tmp_path / "go.py")
    assert secret not in done.output
    assert "\x1b" not in done.output
    assert "holds what looks like a secret" in done.stderr


def test_a_page_is_imported_block_by_block(project, vt, tmp_path):
    page = f"# Guide\n\n```yaml\n{YAML}```\n\n~~~python\n{SDK}~~~\n"
    page += "\n```python\nthis is no code\n```\n"
    (tmp_path / "guide.md").write_text(page)
    vt(tmp_path / "guide.md", "--write")
    assert imported(project, "tune")
    assert imported(project, "guide")


def test_no_secret_of_the_source_is_shown_or_written(project, vt, tmp_path):
    secret = "hf_" + "aB3" * 12
    text = YAML.replace("<YOUR_HF_TOKEN>", secret).replace(
        "[--train", f"[--token={secret}, --train"
    )
    (tmp_path / "x.yaml").write_text(text)
    done = vt(tmp_path / "x.yaml", "--write")
    assert secret not in done.output
    assert all(secret.encode() not in data for data in files(project).values())


def test_mistakes_of_the_source_are_told_with_their_rules(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML.replace("replicaCount: 1", "replicaCount: 4"))
    done = vt(tmp_path / "x.yaml", code=1)
    assert "jobs/x.yaml:" in done.stderr
    assert "[chief-replicas]" in done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing.py", "print('hello')\n"),
        ("broken.py", "def f(:\n"),
        ("deep.py", "x = " + "(" * 5000 + ")" * 5000 + "\n"),
        ("not.ipynb", "[1, 2"),
        ("odd.ipynb", '{"cells": [{"cell_type": "code", "source": {"a": 1}}, 3]}'),
        ("other.yaml", "kind: Job\n"),
        ("list.yaml", "- 1\n"),
        ("nul.py", "x = 1\0\n"),
        ("empty.md", ""),
    ],
)
def test_what_holds_no_job_is_one_line(project, vt, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    done = vt(tmp_path / name, code=2)
    assert done.stderr.startswith("vt import: ")
    assert "Traceback" not in done.output


def test_code_that_would_grow_without_bound_is_read_in_bounds(project, vt, tmp_path):
    grow = "a = 'x' * 10\n" + "a = a + a\n" * 64 + "b = [a]\n" + "b = b + b\n" * 64
    (tmp_path / "grow.py").write_text("a = 'xxxxxxxxxx'\n" + grow + SDK)
    vt(tmp_path / "grow.py")


def test_values_nested_in_one_another_are_bounded_as_well(project, vt, tmp_path):
    nest = "d = {'machine_spec': {}}\n" + "d = {'machine_spec': d, 'disk_spec': d}\n" * 64
    code = f"{nest}from google.cloud import aiplatform\n"
    code += "aiplatform.CustomJob(display_name='x', worker_pool_specs=[d])\n"
    (tmp_path / "nest.py").write_text(code)
    assert "larger than any job" in vt(tmp_path / "nest.py", code=2).stderr


def test_one_source_is_named(vt, tmp_path):
    assert "name one source" in vt(code=2).stderr
    assert "name one source" in vt(tmp_path / "x.py", "--job", "1", code=2).stderr
    assert "No such file" in vt(tmp_path / "x.py", code=2).stderr


def test_a_name_is_one_that_a_stack_file_takes(project, vt, tmp_path):
    (tmp_path / "x.yaml").write_text(YAML)
    assert "Hint: write big-job" in vt(tmp_path / "x.yaml", "--name", "Big Job", code=2).stderr
    vt(tmp_path / "x.yaml", "--name", "big-job", "--write")
    assert imported(project, "big-job")
