"""What kind of file a source is, where its jobs are in it, and why there are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import sources
from vertex_training_cli.importing.sources import SourceContents

Read = Callable[..., SourceContents]
YAML = "workerPoolSpecs: [{containerSpec: {imageUri: a/b/c:1}}]\n"
SPEC = {"workerPoolSpecs": [{"containerSpec": {"imageUri": "a/b/c:1"}}]}
GCLOUD = "gcloud ai custom-jobs create --display-name={} --worker-pool-spec=container-image-uri={}"
CODE = """\
from google.cloud import aiplatform
aiplatform.CustomJob('{}', [{{'container_spec': {{'image_uri': {}}}}}]).run()
"""
NO_JOB = (
    "`vt import` finds workerPoolSpecs and trialJobSpec in YAML or JSON, `gcloud ai "
    "custom-jobs|hp-tuning-jobs create` in scripts, and CustomJob(…), CustomTrainingJob(…) or "
    "from_local_script(…) in Python. `vt import --run COMMAND` records the requests of a command"
)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def found(name: str, text: str | bytes) -> SourceContents:
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / name).write_bytes(data)
        return sources.read(tmp_path / name)

    return found


def refusal(read: Read, name: str, text: str | bytes) -> tuple[str, str]:
    with pytest.raises(CommandError) as told:
        read(name, text)
    return told.value.message.rpartition("/")[2], told.value.hint or ""


def made(name: str, image: str = "a/b/c:1") -> str:
    return GCLOUD.format(name, image)


def names(found: SourceContents) -> list[str]:
    return [job.name for job in found.jobs]


@pytest.mark.parametrize(
    ("name", "text", "message", "hint"),
    [
        ("x.yaml", "a: 1\n", "x.yaml contains no job.", NO_JOB),
        ("x.py", "a = 1\n", "x.py contains no job.", NO_JOB),
        ("x.sh", "echo\n", "x.sh contains no job.", NO_JOB),
        ("x.md", "# Title\n\n```yaml\na: 1\n```\n", "x.md contains no job.", NO_JOB),
        ("x", "#!/bin/sh\nworkerPoolSpecs: []\n", "x contains no job.", NO_JOB),
        ("x.tf", "resource {}", "x.tf contains no job.",
         "Terraform files are not imported: import the existing job by `vt import --job ID`"),
        ("x.py", "a = (\n\n", "x.py contains no job.",
         "cannot parse a part of the Python code: '(' was never closed (x.py, line 1)"),
        ("x.py", f"a = {'-' * 900}1\n", "x.py contains no job.",
         "the Python code is nested too deeply"),
        ("x.ipynb", "{", "x.ipynb is not a notebook: the file is not valid JSON.", ""),
        ("x.ipynb", '{"cells": 3}', "x.ipynb is not a notebook: the file is not valid JSON.", ""),
        ("x.ipynb", '{"cells": [{"cell_type": "code", "source": 3}]}',
         "x.ipynb is not a notebook: the file is not valid JSON.", ""),
        ("x.ipynb", "{}", "x.ipynb contains no job.", NO_JOB),
    ],
)  # fmt: skip
def test_a_source_without_a_job_says_why(
    read: Read, name: str, text: str, message: str, hint: str
) -> None:
    assert refusal(read, name, text) == (message, hint)


def test_a_file_that_is_not_there_or_too_large_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as told:
        sources.read(tmp_path / "none.yaml")
    assert told.value.message == f"{tmp_path}/none.yaml: No such file or directory."
    limit = 4 * 1024 * 1024
    script = f"{made('j')}\n#".encode()
    assert names(read("x.sh", script.ljust(limit))) == ["j"]
    assert refusal(read, "x.sh", script.ljust(limit + 1)) == (
        "x.sh has more than 4,194,304 bytes.", ""
    )  # fmt: skip


def test_odd_fields_of_yaml_are_told_beside_the_job(read: Read) -> None:
    [job] = read("x.yaml", "workerPoolSpecs: [{replicaCount: 0x1F}]\na: 1\na: 2\n").jobs
    assert job.spec["workerPoolSpecs"] == [{"replicaCount": "0x1F"}]
    [remark] = job.remarks
    assert "x.yaml" in remark
    message, _ = refusal(read, "x.yaml", "workerPoolSpecs: [")
    assert message.startswith("x.yaml:")


def notebook(*cells: str | dict[str, Any]) -> str:
    made = [
        {"cell_type": "code", "source": each.splitlines(keepends=True)}
        if isinstance(each, str) else each
        for each in cells
    ]  # fmt: skip
    return json.dumps({"cells": made})


def test_cells_of_a_notebook_are_python_scripts_and_files(read: Read, tmp_path: Path) -> None:
    found = read("x.ipynb", notebook(
        {"cell_type": "markdown", "source": CODE.format("text", "'a'")},
        "%%writefile task.py\nprint(1)\n",
        "%%writefile  -a  more/log.txt\nline\n",
        "%%writefile -a more/log.txt\nmore",
        "%%writefile other.txt\nold",
        "%%writefile other.txt\nnew",
        "%%html\n" + CODE.format("html", "'a'"),
        "%%time\nN = 'a/b'\n%matplotlib inline\n%env TAG=1 \n%set_env NAME  named",
        f"%%bash\n# first\n{made('bash')} --tomorrow=1",
        f"%%sh -e\n{made('sh')}",
        f"%%script zsh\n{made('zsh')}",
        "import os\nif N:\n  %cd x\n  x, y = !ls \\\n    -l\n" + CODE.format(
            "python", "N + os.environ['TAG'] + os.environ['NAME']"),
        "3",
        f"!{made('shell', '{N}')} \\\n  --region=us-east1 \\\n  --labels=a=b",
        "def (:",
    ))  # fmt: skip
    assert found.files == {
        "task.py": "print(1)\n", "more/log.txt": "line\nmore", "other.txt": "new",
    }  # fmt: skip
    images = [job.spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"] for job in found.jobs]
    assert dict(zip(names(found), images, strict=True)) == {
        "bash": "a/b/c:1", "sh": "a/b/c:1", "zsh": "a/b/c:1", "python": "a/b<YOUR_TAG><YOUR_NAME>",
        "shell": "a/b",
    }  # fmt: skip
    assert found.jobs[-1].labels == {"a": "b"}
    assert found.jobs[0].remarks == [
        ("gcloud flag --tomorrow is not imported (x.ipynb, cell 9, line 3)")
    ]
    assert found.remarks == [
        "cannot parse a part of the Python code: invalid syntax (x.ipynb, cell 15, line 1)",
        f"the code computes some values: `vt import --run {tmp_path}/x.ipynb` records them",
    ]
