"""What kind of file a source is, where its jobs are in it, and why there are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import sources
from vertex_training_cli.importing.imported import ImportedJob, Note
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
    "an import looks for workerPoolSpecs, trialJobSpec and Batch's taskGroups in YAML or JSON, for "
    "`gcloud ai custom-jobs|hp-tuning-jobs create` and `gcloud batch jobs submit` in scripts, and "
    "for CustomJob(…), CustomTrainingJob(…), from_local_script(…) or HyperparameterTuningJob(…) in "
    "Python"
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
    ("name", "text"),
    [
        ("x.yaml", YAML),
        ("x.yml", YAML),
        ("x.json", json.dumps(SPEC)),
        ("x", YAML),
        ("x.yaml", "\ufeff" + YAML.replace("\n", "\r\n")),
        ("x.yaml", "job_spec:\n  " + YAML),
        ("x.yaml", YAML.replace("workerPoolSpecs", "worker_pool_specs")),
    ],
)
def test_a_file_of_yaml_or_json_is_one_job_by_the_files_name(
    read: Read, name: str, text: str
) -> None:
    assert read(name, text) == SourceContents(jobs=[ImportedJob("x", SPEC)])


@pytest.mark.parametrize(
    "name",
    ["x.sh", "x.bash", "x.zsh", "x.mk", "x.bat", "x.cmd", "x.ps1", "x.envrc", "x", "x.template",
     "Makefile", "GNUmakefile"],
)  # fmt: skip
def test_a_file_with_lines_of_gcloud_is_a_script(read: Read, name: str) -> None:
    [job] = read(name, f"{made('j')}\n").jobs
    assert (job.name, job.notes) == ("j", [])


@pytest.mark.parametrize(
    ("name", "is_make"),
    [("Makefile", True), ("makefile", True), ("x.mk", True), ("x.sh", False), ("run", False)],
)
def test_only_a_makefile_has_its_own_variables(read: Read, name: str, is_make: bool) -> None:
    [job] = read(name, f"TAG ?= a/b/c:1\nall:\n\t@{made('j', '$(TAG)')}\n").jobs
    image = job.spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"]
    assert image == ("a/b/c:1" if is_make else "<YOUR_TAG>")


@pytest.mark.parametrize("name", ["x.yaml", "x.yml", "x.json"])
def test_yaml_that_mentions_gcloud_is_no_script(read: Read, name: str) -> None:
    assert refusal(read, name, json.dumps({"run": made("j")})) == (
        f"{name}: there is no job in it.", NO_JOB
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "message", "hint"),
    [
        ("x.yaml", "a: 1\n", "x.yaml: there is no job in it.", NO_JOB),
        ("x.py", "a = 1\n", "x.py: there is no job in it.", NO_JOB),
        ("x.sh", "echo\n", "x.sh: there is no job in it.", NO_JOB),
        ("x.md", "# Title\n\n```yaml\na: 1\n```\n", "x.md: there is no job in it.", NO_JOB),
        ("x", "#!/bin/sh\nworkerPoolSpecs: []\n", "x: there is no job in it.", NO_JOB),
        ("x.tf", "resource {}", "x.tf: there is no job in it.",
         "Terraform is not read: `vt import --job ID` takes its job"),
        ("x.py", "a = (\n\n", "x.py: there is no job in it.",
         "a part is no Python that can be read: '(' was never closed (x.py, line 1)"),
        ("x.py", "a\0b", "x.py: there is no job in it.",
         "a part is no Python that can be read: source code string cannot contain null bytes "
         "(x.py, line 1)"),
        ("x.py", f"a = {'-' * 900}1\n", "x.py: there is no job in it.",
         "the code is nested too deeply to be read"),
        ("x.py", "from google.cloud import batch_v1\n", "x.py: there is no job in it.",
         "calls of Google Batch's client are not read: import what `gcloud batch jobs describe "
         "NAME --format json` prints, or run the code by --run"),
        ("x.ipynb", "{", "x.ipynb: this is no notebook: its JSON cannot be read.", ""),
        ("x.ipynb", "[]", "x.ipynb: this is no notebook: its JSON cannot be read.", ""),
        ("x.ipynb", '{"cells": 3}', "x.ipynb: this is no notebook: its JSON cannot be read.", ""),
        ("x.ipynb", '{"cells": [{"cell_type": "code", "source": 3}]}',
         "x.ipynb: this is no notebook: its JSON cannot be read.", ""),
        ("x.ipynb", "{}", "x.ipynb: there is no job in it.", NO_JOB),
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


def test_bytes_that_are_no_text_are_read_as_far_as_possible(read: Read) -> None:
    assert names(read("x.sh", b"echo \xff\n" + made("j").encode())) == ["j"]


def test_odd_fields_of_yaml_are_told_beside_the_job(read: Read) -> None:
    [job] = read("x.yaml", "workerPoolSpecs: [{replicaCount: 0x1F}]\na: 1\na: 2\n").jobs
    assert job.spec["workerPoolSpecs"] == [{"replicaCount": "0x1F"}]
    [remark] = job.remarks
    assert "x.yaml" in remark
    message, _ = refusal(read, "x.yaml", "workerPoolSpecs: [")
    assert message.startswith("x.yaml:")


def test_a_search_without_counts_has_those_of_gcloud(read: Read) -> None:
    [job] = read("x.yaml", f"maxTrialCount: 8\ntrialJobSpec:\n  {YAML}").jobs
    assert job == ImportedJob(
        "x", SPEC, {"maxTrialCount": "8", "parallelTrialCount": 1},
        notes=[Note("parallelTrialCount is 1, as gcloud's flag is by default", "x.yaml", True)],
    )  # fmt: skip


def notebook(*cells: str | dict[str, Any]) -> str:
    made = [
        {"cell_type": "code", "source": each.splitlines(keepends=True)}
        if isinstance(each, str) else each
        for each in cells
    ]  # fmt: skip
    return json.dumps({"cells": made})


def test_cells_of_a_notebook_are_python_scripts_and_files(read: Read) -> None:
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
        "bash": "a/b/c:1", "sh": "a/b/c:1", "zsh": "a/b/c:1", "python": "a/b1named",
        "shell": "a/b",
    }  # fmt: skip
    assert found.jobs[-1].labels == {"a": "b"}
    assert found.jobs[0].remarks == ["gcloud's --tomorrow is not read (x.ipynb, cell 9, line 3)"]
    assert found.remarks == [
        "a part is no Python that can be read: invalid syntax (x.ipynb, cell 15, line 1)"
    ]


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ("%%capture\n\n!ls \\\n -l\nchange(pools)\n", "x.ipynb, cell 2, line 5"),
        ("!ls \\\n -l \\\n -a\nchange(pools)\n", "x.ipynb, cell 2, line 4"),
        ("%%prun\nchange(pools)\n", "x.ipynb, cell 2, line 2"),
        ("  %pip install x\n  !ls\n  change(pools)", "x.ipynb, cell 2, line 3"),
        ("!!ls \\", ""),
    ],
)
def test_lines_of_a_cell_keep_their_numbers(read: Read, cell: str, place: str) -> None:
    pools = "pools = [{'container_spec': {'image_uri': 'a'}}]"
    run = "from google.cloud import aiplatform\naiplatform.CustomJob('j', pools).run()"
    [job] = read("x.ipynb", notebook(pools, cell, run)).jobs
    assert [str(note) for note in job.notes if "change" in note.text] == [
        f"{note} ({place})" for note in ("`change(…)` gets it, and is not read",) if place
    ]
