"""`vt models` and `vt endpoints` through the official clients against services in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from tests.unit.localcloud.serving.conftest import PROJECT, World
from tests.unit.vt.serving.conftest import Vt
from vertex_training.naming import Names, local_project_number

JOB = """\
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec: {imageUri: "us-central1-docker.pkg.dev/p/r/x@sha256:%s"}
""" % ("0" * 64)


def labelled(run: int, stack: str = "local", model: str = "doubler") -> dict[str, Any]:
    """What a stack says of a version."""
    labels = {"vt-stack": stack, "vt-model": model, "vt-job": "train", "vt-run": str(run)}
    return {"labels": labels, "version_aliases": [f"r-{run}{'0' * 19}"]}


def own_id(stack: str = "local", key: str = "doubler") -> str:
    """The id that a stack gives its endpoint."""
    return Names(PROJECT, "", "us-central1", stack).endpoint_id(key)


def serving(world: World, *words: str, stack: str = "local", id_: str = "") -> str:
    """The name of an endpoint of a stack that serves run 3."""
    model = world.upload(*words, id_=f"doubler-{stack}", **labelled(3, stack))
    endpoint = world.endpoint(
        id_ or own_id(stack), display_name=f"doubler-{stack}", labels={"stack": stack},
        dedicated_endpoint_enabled=True,
    )  # fmt: skip
    world.deploy(endpoint, model, "1", {"0": 100})
    return endpoint


def predicted(vt: Vt, text: bytes, *more: str, code: int = 0) -> list[Any]:
    done = vt("endpoints", "predict", "doubler", "--input", "-", *more, text=text, code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_row_gets_a_line_of_answer_in_order(vt: Vt, world: World, tmp_path: Path) -> None:
    serving(world)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f"{number}\n" for number in range(1000)))
    done = vt("endpoints", "predict", "doubler", "--input", str(rows))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [2 * n for n in range(1000)]
    assert done.stderr == ""
    assert predicted(vt, b"1\n2") == [2, 4]
    assert predicted(vt, b"") == []


def test_a_refused_row_ends_the_command_with_the_lines_of_its_request(
    vt: Vt, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server multiplies: of a text it has no product, and breaks the connection."""
    monkeypatch.setattr("vertex_training_cli.serving.endpoints.PATIENCE", 1.0)
    serving(world)
    text = b"".join(b'"x"\n' if n == 340 else b"%d\n" % n for n in range(400))
    done = vt("endpoints", "predict", "doubler", "--input", "-", text=text, code=1)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [2 * n for n in range(256)]
    assert done.stderr.startswith(
        "vt endpoints predict: the endpoint did not answer the request for lines 257 to 400: "
    )


def test_an_endpoint_of_another_stack_is_not_this_stacks(vt: Vt, world: World) -> None:
    serving(world, stack="other", id_="234567890")
    told = vt("endpoints", "predict", "doubler", "-i", "-", code=1).stderr
    assert "stack local has no endpoint 'doubler'" in told
    told = vt("endpoints", "predict", "234567890", "-i", "-", code=1).stderr
    assert "has no endpoint '234567890'" in told
    other = Path("Pulumi.other.yaml")
    other.write_text(f"{other.read_text()[:-2]}, vertex-training:endpoints: {{doubler: {{}}}}}}\n")
    told = vt("endpoints", "list").stderr
    assert "no endpoints in stack local. Stack other has endpoints: `vt endpoints list " in told
    assert vt("models", "list").stderr == "vt: no models in stack local\n"


def test_an_endpoint_that_serves_nothing_is_said(vt: Vt, world: World) -> None:
    world.endpoint(own_id(), display_name="doubler-local", labels={"stack": "local"})
    told = vt("endpoints", "predict", "doubler", "-i", "-", code=1).stderr
    assert "has no deployed model" in told


def test_a_file_that_is_not_there_is_said(vt: Vt, world: World) -> None:
    serving(world)
    told = vt("endpoints", "predict", "doubler", "-i", "none.jsonl", code=1).stderr
    assert told == "vt endpoints predict: cannot use none.jsonl: No such file or directory.\n"


def test_lists_have_versions_and_splits(vt: Vt, world: World) -> None:
    endpoint = serving(world)
    newer = world.upload(id_="doubler-local", slope=3, **labelled(4))
    world.deploy(endpoint, newer, "2", {"1": 90, "0": 10})
    [shown] = json.loads(vt("endpoints", "list", "--format", "json").stdout)
    assert shown["endpoint"] == "doubler"
    assert shown["split"] == {"run 3": 90, "run 4": 10}
    assert shown["reach"] == "public, dedicated"
    head, row = vt("endpoints", "list").stdout.splitlines()
    assert head.split() == ["ENDPOINT", "SPLIT", "REACH", "ADDRESS", "ID"]
    assert "run 3: 90, run 4: 10" in row
    models = json.loads(vt("models", "list", "--format", "json").stdout)
    assert [(each["run"], each["number"]) for each in models] == [("4", "2"), ("3", "1")]
    shown = vt("models", "show", "doubler").stdout
    first, second = shown.split("\n\n")
    assert "run        train 4" in first
    assert "run        train 3" in second
    told = vt("models", "show", "dubler", code=1).stderr
    assert "has no model 'dubler'" in told
    assert "did you mean 'doubler'?" in told


def declared(folder: Path, split: str) -> None:
    (folder / "job.yaml").write_text(JOB)
    (folder / "Pulumi.local.yaml").write_text(f"""\
config:
  gcp:project: {PROJECT}
  gcp:region: us-central1
  vertex-training:projectNumber: "{local_project_number(PROJECT)}"
  vertex-training:jobs: {{train: {{file: job.yaml, run: 4}}}}
  vertex-training:models:
    doubler: {{job: train, run: [3, 4],
              container: "us-central1-docker.pkg.dev/p/r/serve@sha256:{"0" * 64}"}}
  vertex-training:endpoints:
    doubler: {{machine: n1-standard-2, split: {split}}}
""")


def test_an_endpoint_with_a_name_of_the_stacks_alone_gets_no_rows_but_by_its_id(
    vt: Vt, world: World
) -> None:
    serving(world, id_="111111111")
    told = vt("endpoints", "predict", "doubler", "-i", "-", text=b"1", code=1)
    assert "111111111" in told.stderr
    assert "stack local did not create" in told.stderr
    assert not told.stdout
    assert vt("endpoints", "predict", "111111111", "-i", "-", text=b"1").stdout == "2\n"
    declared(Path.cwd(), '{"run 3": 100}')
    told = vt("endpoints", "wait", "doubler", "--deadline", "1s", code=124)
    assert "endpoint doubler does not exist yet" in told.stderr


@pytest.mark.parametrize(
    "command",
    [("models", "list"), ("models", "show", "doubler"), ("endpoints", "list"),
     ("endpoints", "predict", "doubler", "-i", "-")],
)  # fmt: skip
def test_a_refused_right_is_one_clear_line(vt: Vt, world: World, command: tuple[str, ...]) -> None:
    serving(world)
    for method in ("ListModels", "ListEndpoints"):
        fault = Fault.parse(
            service="models", kind="error", method=method, code="PERMISSION_DENIED", times=0
        )
        FaultTable(world.home.faults).add(fault)
    told = vt(*command, code=1, text=b"1")
    assert "PERMISSION_DENIED" in told.stderr
    assert (told.stdout, told.stderr.count("\n")) == ("", 1)
