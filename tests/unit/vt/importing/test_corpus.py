"""Sources of ``tests/corpus/imports`` become the jobs, remarks and refusals stated there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
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
#: A command with a label ``l`` of what stands behind it.
CREATE: Final = (
    "gcloud ai custom-jobs create --display-name=j "
    "--worker-pool-spec=machine-type=m,container-image-uri=i --labels=l="
)
CALL: Final = """
from google.cloud import aiplatform
aiplatform.CustomContainerTrainingJob("j", "i").run(args=values)
"""


def corpus(name: str) -> dict[str, Any]:
    return yaml.safe_load((CORPUS / name).read_text())


SHAPES: Final = corpus("vertex.yaml")
TUTORIALS: Final = corpus("tutorials.yaml")
PYTHON: Final = corpus("python.yaml")
SHELL: Final = corpus("shell.yaml")
NAMES: Final = "".join(f"{name} = {value!r}\n" for name, value in PYTHON["names"].items())


def at(spec: Any, path: str) -> Any:
    """Return the value at a path such as ``workerPoolSpecs[0].replicaCount``."""
    for part in path.replace("[", ".[").split("."):
        spec = spec[int(part[1:-1])] if part.startswith("[") else spec[part]
    return spec


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_source_becomes_its_jobs_or_is_refused(tmp_path: Path, shape: dict[str, Any]) -> None:
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
    assert source.jobs[0].region == shape.get("region", source.jobs[0].region)
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


def program(code: str) -> str:
    """Return a program that makes a list of an expression, or of what code calls ``value``."""
    is_code = "\n" in code or code.startswith("value") or " = " in code
    return f"{NAMES}{code}\nvalues = [value]" if is_code else f"{NAMES}values = [{code}]"


def read(file: Path, text: str) -> tuple[list[Any], list[str]]:
    """Return the arguments of the job that a program submits, and the notes on it."""
    file.write_text(text + CALL)
    [job] = sources.read(file).jobs
    args = job.spec["workerPoolSpecs"][0]["containerSpec"].get("args", [])
    return args, [*map(str, job.notes)]


def computed(code: str) -> list[str]:
    """Return the arguments that Python itself computes."""
    names: dict[str, Any] = {"os": os, "json": json} | dict.fromkeys(
        ("Path", "PurePosixPath"), PurePosixPath
    )
    exec(program(code), names)
    return [str(value) for value in names["values"]]


@pytest.mark.parametrize("code", PYTHON["same"])
def test_literal_is_read_as_python_computes_it(tmp_path: Path, code: str) -> None:
    assert read(tmp_path / "s.py", program(code)) == (computed(code), [])


@pytest.mark.parametrize("code", PYTHON["computed"])
def test_computed_value_is_a_placeholder_with_a_note(tmp_path: Path, code: str) -> None:
    computed(code)
    args, notes = read(tmp_path / "s.py", program(code))
    opens = set(re.findall(r"<[A-Z0-9_]+>", str(args)))
    assert opens
    assert all(any(note.startswith(f"{each} is computed: `") for note in notes) for each in opens)


@pytest.mark.parametrize(("code", "value"), PYTHON["open"].items())
def test_undecided_value_is_a_placeholder(tmp_path: Path, code: str, value: str) -> None:
    assert read(tmp_path / "s.py", program(code))[0] == [value]


def label(folder: Path, script: str) -> tuple[str, list[str]]:
    """Return the label that a script's ``VALUE`` becomes, and what is said of its job."""
    (folder / "run.sh").write_text(script.replace("VALUE", CREATE))
    source = sources.read(folder / "run.sh")
    [job] = source.jobs
    return job.labels.get("l", ""), [*source.remarks, *job.remarks, *map(str, job.notes)]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
@pytest.mark.parametrize("script", SHELL["same"])
def test_literal_of_a_script_is_what_bash_makes_of_it(tmp_path: Path, script: str) -> None:
    fake = f"""gcloud() {{
        for word; do case $word in --labels=*)
            printf %s "${{word#--labels=l=}}" > {tmp_path}/got;;
        esac; done
    }}
    """
    program = fake + script.replace("VALUE", CREATE)
    subprocess.run(["bash", "-c", program], capture_output=True, check=False)
    assert label(tmp_path, script) == ((tmp_path / "got").read_text(), [])


@pytest.mark.parametrize(("script", "value"), SHELL["open"].items())
def test_computed_value_of_a_script_is_a_placeholder(
    tmp_path: Path, script: str, value: str
) -> None:
    found, said = label(tmp_path, script)
    assert found == value
    assert f"`vt import --run 'bash {tmp_path}/run.sh'`" in "\n".join(said)


@pytest.mark.parametrize(("script", "words"), SHELL["noted"].items())
def test_job_that_a_script_may_make_otherwise_has_a_note(
    tmp_path: Path, script: str, words: str
) -> None:
    assert words in "\n".join(label(tmp_path, script)[1])
