"""Sources of ``tests/corpus/imports`` become the jobs, remarks and refusals stated there."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.importing import sources

CORPUS: Final = Path(__file__).parents[3] / "corpus" / "imports"
STACK: Final = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
"""
#: A file that commands of the corpus name.
BATCH_CONFIG: Final[dict[str, Any]] = {
    "taskGroups": [{"taskSpec": {
        "runnables": [{"container": {"imageUri": "us-docker.pkg.dev/acme-ml/images/train:1"}}],
        "maxRunDuration": "3600s",
    }}],
    "allocationPolicy": {"instances": [{"policy": {"machineType": "n2-standard-8"}}]},
    "logsPolicy": {"destination": "CLOUD_LOGGING"},
}  # fmt: skip
CALL: Final = """
from google.cloud import aiplatform
aiplatform.CustomContainerTrainingJob("j", "i").run(args=value)
"""


def corpus(name: str) -> dict[str, Any]:
    return yaml.safe_load((CORPUS / name).read_text())


SHAPES: Final = corpus("vertex.yaml") | corpus("batch.yaml")
TUTORIALS: Final = corpus("tutorials.yaml")
PYTHON: Final = corpus("python.yaml")
NAMES: Final = "".join(f"{name} = {value!r}\n" for name, value in PYTHON["names"].items())


def at(spec: Any, path: str) -> Any:
    """Return the value at a path such as ``workerPoolSpecs[0].replicaCount``."""
    for part in path.replace("[", ".[").split("."):
        spec = spec[int(part[1:-1])] if part.startswith("[") else spec[part]
    return spec


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_source_becomes_its_jobs_or_is_refused(tmp_path: Path, shape: dict[str, Any]) -> None:
    (tmp_path / "c.json").write_text(json.dumps(BATCH_CONFIG))
    file = tmp_path / shape["file"]
    file.write_text(shape["source"])
    if "refused" in shape:
        with pytest.raises(CommandError) as refused:
            sources.read(file)
        assert [words for words in shape["refused"] if words not in str(refused.value)] == []
        return
    source = sources.read(file)
    assert len(source.jobs) == shape.get("jobs", 1)
    for path, value in shape.get("values", {}).items():
        assert at(source.jobs[0].spec, path) == value, path
    for key, value in shape.get("study", {}).items():
        assert source.jobs[0].study[key] == value
    notes = [str(note) for job in source.jobs for note in (*job.remarks, *job.notes)]
    text = "\n".join([*source.remarks, *notes])
    assert [words for words in shape.get("remarks", []) if words not in text] == [], text
    assert [words for words in shape.get("absent", []) if words in text] == [], text


@pytest.mark.parametrize("tutorial", TUTORIALS.values(), ids=TUTORIALS)
def test_import_of_a_tutorial_prints_its_job_and_each_problem_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tutorial: dict[str, Any]
) -> None:
    root = tmp_path / "project"
    (root / "jobs").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(root)
    (tmp_path / tutorial["file"]).write_text(tutorial["source"])
    done = CliRunner().invoke(app, ["import", str(tmp_path / tutorial["file"]), "--fix"])
    assert done.exit_code == tutorial["code"], done.output
    assert [words for words in tutorial["output"] if words not in done.output] == [], done.output
    assert [words for words in tutorial.get("absent", []) if words in done.stderr] == []
    problems = [line for line in done.stderr.splitlines() if not line.startswith(" ")]
    assert len(problems) == len({*problems})
    assert not list((root / "jobs").iterdir())


def program(code: str, value: str) -> str:
    """Return a program with an expression, or with code that sets ``value``."""
    is_code = "\n" in code or code.startswith("value") or " = " in code
    return f"{NAMES}{code if is_code else f'value = {code}'}\nvalue = [{value}]"


def read(file: Path, text: str) -> tuple[list[Any], list[str]]:
    """Return the arguments of the job that a program submits, and the notes on it."""
    file.write_text(text + CALL)
    [job] = sources.read(file).jobs
    args = job.spec["workerPoolSpecs"][0]["containerSpec"].get("args", [])
    return args, [*map(str, job.notes)]


@pytest.mark.parametrize("code", PYTHON["same"])
def test_value_that_is_read_is_the_one_that_python_computes(tmp_path: Path, code: str) -> None:
    names: dict[str, Any] = {"os": os, "json": json} | dict.fromkeys(
        ("Path", "PurePosixPath"), PurePosixPath
    )
    text = program(code, "str(value)")
    exec(text, names)
    assert read(tmp_path / "s.py", text)[0] == names["value"]


@pytest.mark.parametrize(("code", "value"), PYTHON["open"].items())
def test_undecided_value_is_a_placeholder(tmp_path: Path, code: str, value: Any) -> None:
    assert read(tmp_path / "s.py", program(code, "value"))[0] == [value]


@pytest.mark.parametrize(("code", "expected"), PYTHON["noted"].items())
def test_value_that_depends_on_a_guess_has_a_note(
    tmp_path: Path, code: str, expected: dict[str, Any]
) -> None:
    args, notes = read(tmp_path / "s.py", f"{code}\nvalue = [value]")
    assert args == [expected["value"]]
    missing = [words for words in expected.get("notes", []) if words not in "\n".join(notes)]
    assert missing == [], notes
