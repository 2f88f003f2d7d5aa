"""Jobs of Google Batch by the command: an entry with its backend, and nothing lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from google.cloud import batch_v1
from google.protobuf.descriptor import Descriptor
from typer.testing import CliRunner

from tests.unit.localcloud.batch.conftest import Jobs, make_jobs
from tests.unit.localcloud.batch.conftest import job as batch_job
from tests.unit.localcloud.conftest import PROJECT
from tests.unit.vt.importing.test_corpus import BATCH_CONFIG
from vertex_training.naming import local_project_number
from vertex_training_cli.cli import app
from vertex_training_cli.importing import batch_messages

__all__ = ["make_jobs"]
STACK = f"""\
config:
  gcp:project: {PROJECT}
  gcp:region: us-central1
  vertex-training:projectNumber: "{local_project_number(PROJECT)}"
  vertex-training:buckets: {{data: {{}}}}
  vertex-training:serviceAccounts: {{trainer: {{reads: [data]}}}}
"""
CLOUD_STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
"""
PSC = "  vertex-training:network: {mode: psc, subnet: {range: 10.20.0.0/26}}\n"
SUBNET = {"subnetwork": "regions/us-central1/subnetworks/inner", "noExternalIpAddress": True}
INSIDE = {"network": {"networkInterfaces": [SUBNET]}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    (root / "jobs").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(root)
    return root


def vt(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["import", *arguments])


def job(place: dict[str, Any] | None = None, task: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a message of Batch with more in its place and in its task."""
    [group] = BATCH_CONFIG["taskGroups"]
    groups = [{"taskSpec": group["taskSpec"] | (task or {})}]
    policy = BATCH_CONFIG["allocationPolicy"] | (place or {})
    return BATCH_CONFIG | {"taskGroups": groups, "allocationPolicy": policy}


def write(project: Path, message: dict[str, Any]) -> str:
    (project / "train.json").write_text(json.dumps(message))
    return "train.json"


def spec(project: Path, name: str) -> dict[str, Any]:
    message = yaml.safe_load((project / f"jobs/{name}.yaml").read_text())
    return message.get("jobSpec", message)


@pytest.mark.parametrize("has_network", [True, False])
def test_a_private_network_is_the_stacks_where_it_has_one(project: Path, has_network: bool) -> None:
    if has_network:
        (project / "Pulumi.local.yaml").write_text(STACK + PSC)
    done = vt(write(project, job(place=INSIDE)), "--write")
    assert ("pscInterfaceConfig" in spec(project, "train")) is has_network
    wanted = "needs network.nat" if has_network else "unless the stack has network mode psc"
    assert wanted in done.stderr


def test_a_secret_is_a_name_and_never_a_value(project: Path) -> None:
    name = "projects/acme-ml/secrets/HuggingFace_Token/versions/1"
    environment = {
        "secretVariables": {"HF_TOKEN": name},
        "variables": {"API_KEY": "hf_" + "aB3" * 12},
    }
    done = vt(write(project, job(task={"environment": environment})), "--write")
    assert "aB3aB3" not in done.output
    env = spec(project, "train")["workerPoolSpecs"][0]["containerSpec"]["env"]
    assert {"name": "HF_TOKEN", "value": "${secrets.huggingface-token}/versions/1#value"} in env
    assert all("aB3" not in path.read_text() for path in (project / "jobs").iterdir())
    stack = yaml.safe_load((project / "Pulumi.local.yaml").read_text())["config"]
    assert "huggingface-token" in stack["vertex-training:secrets"]


def test_a_secret_that_the_stack_has_or_names_is_that_one(project: Path) -> None:
    stack = project / "Pulumi.local.yaml"
    stack.write_text(STACK + "  vertex-training:secrets: {hf: {}}\n")
    secrets = {"HF": f"projects/{PROJECT}/secrets/hf-local/versions/latest", "ODD": "$ODD_SECRET"}
    vt(write(project, job(task={"environment": {"secretVariables": secrets}})), "--write")
    env = spec(project, "train")["workerPoolSpecs"][0]["containerSpec"]["env"]
    assert env[0] == {"name": "HF", "value": "${secrets.hf.value}"}
    assert env[1] == {"name": "ODD", "value": "<SECRET_OF_ODD>"}
    config = yaml.safe_load(stack.read_text())["config"]
    assert config["vertex-training:secrets"] == {"hf": {}}
    assert config["vertex-training:serviceAccounts"]["train"] == {"secrets": ["hf"]}


def test_a_secret_that_is_there_is_its_owners_to_describe(project: Path) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(CLOUD_STACK)
    there = "projects/acme-ml-dev/secrets/hf"
    environment = {
        "secretVariables": {"HF_TOKEN": f"{there}/versions/latest"},
        "variables": {"API_KEY": "<YOUR_KEY>"},
    }
    source = write(project, job(task={"environment": environment}))
    done = vt(source, "--stack", "dev", "--write")
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(stack.read_text())["config"]["vertex-training:secrets"] == {
        "hf": {"existing": there},
        "api-key": {"description": "API_KEY of an imported job"},
    }


def test_secrets_of_one_name_in_two_projects_are_two(project: Path) -> None:
    names = {
        key: f"projects/{key.lower()}-ml/secrets/token/versions/latest" for key in ("A1", "B1")
    }
    steps = {"environment": {"secretVariables": {**names, "A2": names["A1"]}}}
    vt(write(project, job(task=steps)), "--write")
    env = spec(project, "train")["workerPoolSpecs"][0]["containerSpec"]["env"]
    assert {each["name"]: each["value"] for each in env} == {
        "A1": "${secrets.token.value}",
        "B1": "${secrets.token-2.value}",
        "A2": "${secrets.token.value}",
    }


def test_without_a_stack_the_backend_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.json").write_text(json.dumps(job()))
    done = vt("train.json")
    assert "runs them on Google Batch, as the source does: train" in done.stderr


def test_a_job_that_ran_is_imported_whole(
    project: Path, make_jobs: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = make_jobs(start=False)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", jobs.address)
    made = jobs.create(
        batch_job({"container": {"image_uri": "python:3.11", "entrypoint": "python"}},
                  environment={"variables": {"EPOCHS": "3"}}, max_run_duration="60s"), "old"
    )  # fmt: skip
    done = vt("--job", made.name, "--write")
    assert done.exit_code == 0, done.output
    pool = spec(project, "old")["workerPoolSpecs"][0]["containerSpec"]
    assert pool["env"] == [{"name": "EPOCHS", "value": "3"}]
    assert pool["command"] == ["python"]
    stack = yaml.safe_load((project / "Pulumi.local.yaml").read_text())["config"]
    assert stack["vertex-training:jobs"]["old"]["backend"] == "batch"


def _fields(message: Descriptor, path: str = "") -> Iterator[str]:
    for field in message.fields:
        here = f"{path}.{field.json_name}".lstrip(".")
        inner = field.message_type
        own = inner is not None and inner.file.package == "google.cloud.batch.v1"
        if own and not inner.GetOptions().map_entry and here not in batch_messages.OUTPUT:
            yield from _fields(inner, here)
        else:
            yield here


def test_every_field_of_google_is_in_a_table() -> None:
    """A field that Google adds is one somebody has to think about."""
    tables = (*batch_messages.OUTPUT, *batch_messages.CARRIED, *batch_messages.LEFT_OUT,
              *batch_messages.REFUSED)  # fmt: skip
    fields = list(_fields(batch_v1.Job.pb(batch_v1.Job()).DESCRIPTOR))
    assert len(fields) > 60
    missing = [f for f in fields if not any(f == t or f.startswith(f"{t}.") for t in tables)]
    assert missing == []
    assert [t for t in tables if not any(f == t or f.startswith(f"{t}.") for f in fields)] == []
