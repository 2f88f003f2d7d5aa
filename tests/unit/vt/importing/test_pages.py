"""Jobs in the blocks of code of a page, and files that lie beside a source or are written by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.vt.importing.test_sources import SPEC, YAML, made
from vertex_training.errors import CommandError
from vertex_training_cli.importing import sources
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sources import SourceContents


def page(tmp_path: Path, text: str, name: str = "guide.md") -> SourceContents:
    (tmp_path / name).write_text(text)
    return sources.read(tmp_path / name)


def fenced(code: str, language: str = "", mark: str = "```") -> str:
    return f"{mark}{language}\n{code.rstrip()}\n{mark}\n"


def test_blocks_build_on_one_another_and_those_without_a_job_are_told(tmp_path: Path) -> None:
    blocks = [
        "Text `before`\n",
        fenced("from google.cloud import aiplatform\nIMAGE = 'a/b/c:1'", "python"),
        fenced(">>> import x"),
        fenced("python = {"),
        fenced("some output\nwith lines", "text"),
        fenced("workerPoolSpecs: [", "yaml"),
        fenced("def unfinished(:", "python"),
        fenced("ls -l", "bash"),
        fenced(
            "pools = [{'container_spec': {'image_uri': IMAGE, 'args': more}}]\n\n"
            "aiplatform.CustomJob('j', pools).run()",
            "python",
        ),
    ]
    found = page(tmp_path, "".join(blocks))
    [job] = found.jobs
    assert (job.name, job.spec["workerPoolSpecs"]) == (
        "j", [{"containerSpec": {"imageUri": "a/b/c:1", "args": "<YOUR_MORE>"}}]
    )  # fmt: skip
    assert job.notes == [Note("<YOUR_MORE> is computed: `more`", "guide.md, line 26")]
    broken, left, way_on = found.remarks
    assert way_on == "the code computes some values: `vt import --run COMMAND` records them"
    assert broken.startswith(f"line 17: {tmp_path}/guide.md:")
    assert left == "code blocks without a job are at lines 7, 10, 13, 17, 20, 23"


def test_the_line_of_a_command_in_a_page_is_told(tmp_path: Path) -> None:
    line = f"{made('j')} --tomorrow=1"
    for text in (f"a\n\n{fenced(line, 'sh')}", f"a\n\n\nb `{line}`\n", f"a\n\n\n    {line}\n"):
        [job] = page(tmp_path, text).jobs
        assert job.remarks == ["gcloud flag --tomorrow is not imported (guide.md, line 4)"]


SCRIPT = "gcloud ai custom-jobs create --display-name=j --config={}\n"


@pytest.mark.parametrize("file", ["cfg.yaml", "./cfg.yaml"])
def test_a_file_that_gcloud_reads_lies_beside_the_source_or_is_written(
    tmp_path: Path, file: str
) -> None:
    (tmp_path / "cfg.yaml").write_text(YAML)
    assert page(tmp_path, SCRIPT.format(file), "x.sh").jobs == [ImportedJob("j", SPEC)]
    written = f"echo a > other.yaml\ncat > /tmp/cfg.yaml <<EOF\n{YAML.replace('c:1', 'c:2')}EOF\n"
    [job] = page(tmp_path, written + SCRIPT.format(file), "x.sh").jobs
    assert job.spec["workerPoolSpecs"] == [{"containerSpec": {"imageUri": "a/b/c:2"}}]


@pytest.mark.parametrize("text", [None, "a: 1\n", "workerPoolSpecs: ["])
def test_a_command_whose_file_is_no_job_makes_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "cfg.yaml").write_text(text)
    what = "the job file of --config, cfg.yaml, is not beside the source"
    with pytest.raises(CommandError) as refused:
        page(tmp_path, SCRIPT.format("cfg.yaml"), "x.sh")
    assert f"{what}. Copy the file there, then import again (x.sh, line 1)" in refused.value.hint


@pytest.mark.parametrize(
    ("above", "first", "names"),
    [
        ("Create a file called `cfg.yaml`.\n\nPaste this:\n\n", "", ["j"]),
        ("", "# cfg.yaml\n", ["j"]),
        ("Write `other.yaml`:\n", "", ["guide"]),
        (f"`cfg.yaml` follows.\n{fenced('ls', 'sh')}", "", ["guide"]),
    ],
)
def test_a_block_that_the_page_calls_a_file_is_the_file_of_its_commands(
    tmp_path: Path, above: str, first: str, names: list[str]
) -> None:
    document, command = fenced(first + YAML, "yaml"), fenced(SCRIPT.format("cfg.yaml"), "sh")
    for text in (f"{above}{document}\nRun:\n{command}", f"{command}\nwith\n{above}{document}"):
        assert [job.name for job in page(tmp_path, text).jobs] == names
