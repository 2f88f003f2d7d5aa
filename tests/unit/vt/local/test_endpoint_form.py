"""What `vt local up --endpoints FILE` makes of a stack file, and says of the answers."""

import json
from dataclasses import replace

import pytest
import yaml

from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.serving.conftest import PROJECT, make_world, world
from vertex_training.errors import CommandError
from vertex_training.naming import Names
from vertex_training_cli.engine import stacks
from vertex_training_cli.local import up as local_up

__all__ = ["make_world", "world"]

STACK = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:images: {other: {context: jobs/other}}
  vertex-training:jobs: {doubler: {file: jobs/doubler.yaml}}
"""
ADDED = """\
config:
  vertex-training:images: {serve: {context: jobs/serve, include: [jobs/lib/x, jobs/y]}}
  vertex-training:models: {doubler: {run: 1, container: "${images.serve}"}}
  vertex-training:endpoints: {doubler: {machine: n1-standard-2, split: {"run 1": 100}}}
"""
#: A model and an endpoint that have other keys than their job and their model.
OF_ANOTHER_NAME = """\
config:
  vertex-training:models: {twice: {job: doubler, run: 1}}
  vertex-training:endpoints: {doubler: {model: twice, split: {"run 1": 100}}}
"""
MODELS, ENDPOINTS = "vertex-training:models", "vertex-training:endpoints"


@pytest.fixture
def checkout(home):
    """A home of a checkout that has no images built."""
    root = home.root / "checkout"
    (root / "jobs" / "serve").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    (root / "added.yaml").write_text(ADDED)
    docker = 'FROM scratch\nENTRYPOINT ["python", "-m", "serve"]\n'
    (root / "jobs" / "serve" / "Dockerfile").write_text(docker)
    return replace(home, repo=root)


def config(checkout):
    return yaml.safe_load((checkout.repo / "Pulumi.local-endpoint.yaml").read_text())["config"]


def run(checkout, monkeypatch, train=0, up=0):
    """The exit code, and stack files by who was given them."""
    seen = []

    def step(name, code):
        def take(stack):
            seen.append((name, stack, config(checkout)))
            return code

        return take

    monkeypatch.setattr(local_up, "_show_endpoints", lambda *_: 0)
    given = step("train", train), step("up", up)
    added = checkout.repo / "added.yaml"
    return local_up.run_with_endpoints(checkout, "local", added, *given), seen


def test_what_serves_goes_on_while_the_next_run_trains(checkout, monkeypatch):
    run(checkout, monkeypatch)
    (checkout.repo / "added.yaml").write_text(ADDED.replace("run: 1", "run: [1, 2]"))
    edited = STACK.replace("file: jobs/doubler.yaml", "file: jobs/doubler.yaml, run: 2")
    (checkout.repo / "Pulumi.local.yaml").write_text(edited)
    _, [(_, _, before), (_, _, after)] = run(checkout, monkeypatch)
    assert before["vertex-training:jobs"]["doubler"]["run"] == 2
    assert (before[MODELS]["doubler"]["run"], after[MODELS]["doubler"]["run"]) == (1, [1, 2])
    assert before[ENDPOINTS] == after[ENDPOINTS]


@pytest.mark.parametrize(("train", "up", "steps"), [(3, 0, ["train"]), (0, 4, ["train", "up"])])
def test_a_step_that_fails_is_the_last_and_its_exit_code_is_ours(
    checkout, monkeypatch, train, up, steps
):
    code, seen = run(checkout, monkeypatch, train, up)
    assert (code, [step for step, _, _ in seen]) == (train or up, steps)


def test_a_container_without_python_cannot_stand_on_this_host(checkout, monkeypatch):
    file = checkout.repo / "jobs" / "serve" / "Dockerfile"
    file.write_text('FROM scratch\nENTRYPOINT ["/server"]\n')
    with pytest.raises(CommandError) as refused:
        run(checkout, monkeypatch)
    assert str(refused.value) == (
        "the ENTRYPOINT of jobs/serve is not python, so it cannot run on this host. "
        "Hint: build the image with `vt images build`, and set its digest."
    )


@pytest.mark.parametrize(
    "text", ["config: [", "a", "config: {}", ADDED.replace("images", "image"), "config: 3"]
)
def test_a_file_of_another_form_is_refused_before_anything_is_written(checkout, monkeypatch, text):
    (checkout.repo / "added.yaml").write_text(text)
    with pytest.raises(CommandError) as refused:
        run(checkout, monkeypatch)
    assert str(refused.value) == (
        f"{checkout.repo / 'added.yaml'} must have the form of a stack file with images, "
        "models and endpoints. Hint: see the example in docs/serving.md"
    )
    assert not (checkout.repo / "Pulumi.local-endpoint.yaml").exists()


def test_a_file_that_is_not_there_is_said(checkout, monkeypatch):
    (checkout.repo / "added.yaml").unlink()
    with pytest.raises(CommandError, match=r"cannot read .*/added.yaml: No such file"):
        run(checkout, monkeypatch)


def test_a_stack_of_the_cloud_and_a_file_of_somebodys_own_are_left(checkout, monkeypatch):
    own = checkout.repo / "Pulumi.local-endpoint.yaml"
    own.write_text("config: {}\n")
    with pytest.raises(CommandError, match="this command did not write the file"):
        run(checkout, monkeypatch)
    assert own.read_text() == "config: {}\n"
    (checkout.repo / "Pulumi.local.yaml").write_text(STACK.replace("local-training", "acme"))
    with pytest.raises(CommandError, match="stack local is not a stack of the local cloud"):
        run(checkout, monkeypatch)


@pytest.mark.parametrize(
    ("apart", "code", "said", "added"),
    [
        (0.9e-6, 0, "equal to the script's predictions (at most 9e-07 apart)", ADDED),
        (
            1.1e-6,
            1,
            "DIFFERENT FROM the script's predictions (at most 1e-06 apart)",
            OF_ANOTHER_NAME,
        ),
    ],
)
def test_answers_are_held_against_what_the_script_predicted_itself(
    checkout, world, monkeypatch, capsys, apart, code, said, added
):
    """By a real endpoint; the run's own predictions are a file beside the model."""
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{world.port}")
    monkeypatch.setattr(stacks.StackRef, "connect_clients", lambda _: None)
    id_ = Names(PROJECT, "", "us-central1", "local").endpoint_id("doubler")
    endpoint = world.endpoint(id_, display_name="doubler-local", labels={"stack": "local"})
    world.deploy(endpoint, world.upload(), "1", {"0": 100})
    output = {"baseOutputDirectory": {"outputUriPrefix": "gs://artifacts/1"}}
    request = {"displayName": "doubler", "jobSpec": output}
    job = JobRecord.new(PROJECT, "us-central1", request, JobState.SUCCEEDED)
    JobTable(checkout.database).insert(job)
    write_state(checkout, f"projects/p/locations/r/customJobs/{job.job_id}")
    own = checkout.storage / "artifacts" / "1" / "model" / local_up.OWN
    own.parent.mkdir(parents=True)
    # of more than a hundred rows the others are left out
    lines = [{"instance": n, "prediction": 2 * n + (n == 41) * apart} for n in range(100)]
    lines.append({"instance": 0, "prediction": 9})
    own.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    ref, given = stacks.find("local", checkout.repo), yaml.safe_load(added)["config"]
    assert local_up._show_endpoints(checkout, ref, given) == code
    number = endpoint.rpartition("/")[2]
    assert capsys.readouterr().out.splitlines() == [
        "", "ENDPOINT     doubler", f"id           {number}", f"predictions  100, {said}",
    ]  # fmt: skip
    own.unlink()
    assert local_up._show_endpoints(checkout, ref, given) == 0
    assert capsys.readouterr().out.splitlines() == ["", "ENDPOINT  doubler", f"id        {number}"]


def write_state(checkout, job):
    """The state of a stack with one job."""
    urn = "urn:pulumi:local::demo::x::doubler"
    resource = {"urn": urn, "type": "x", "custom": True, "id": job}
    file = checkout.pulumi / ".pulumi" / "stacks" / "demo" / "local.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": [resource]}}}))
