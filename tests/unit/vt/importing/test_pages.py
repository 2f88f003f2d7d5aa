"""Jobs in the blocks of code of a page, and files that lie beside a source or are written by it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.unit.vt.importing.test_sources import CODE, SPEC, YAML, made, names
from vertex_training_cli.importing import sources
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sources import SourceContents


def page(tmp_path: Path, text: str, name: str = "guide.md") -> SourceContents:
    (tmp_path / name).write_text(text)
    return sources.read(tmp_path / name)


def fenced(code: str, language: str = "", mark: str = "```") -> str:
    return f"{mark}{language}\n{code.rstrip()}\n{mark}\n"


JOB = CODE.format("j", "'a/b/c:1'")


@pytest.mark.parametrize("name", ["x.md", "x.rst", "x.txt", "x.qmd", "x.Rmd", "x.markdown"])
def test_files_of_text_are_pages(tmp_path: Path, name: str) -> None:
    assert names(page(tmp_path, f"See\n\n{fenced(JOB, 'python')}\n", name)) == ["j"]


@pytest.mark.parametrize(
    "block",
    [
        fenced(JOB, "python"),
        fenced(JOB, "py"),
        fenced(JOB, "PYTHON"),
        fenced(JOB, " python title=x"),
        fenced(JOB, "{code-block} python"),
        fenced(JOB),
        fenced(JOB, "python", "~~~"),
        fenced(JOB, "python", "````"),
        textwrap.indent(fenced(JOB, "python"), "  "),
        textwrap.indent(fenced(JOB, "python"), "\t"),
        textwrap.indent(JOB, "    "),
        textwrap.indent(JOB, "\t"),
        fenced(made("j"), "sh"),
        fenced(made("j"), "console"),
        fenced(made("j")),
        textwrap.indent(made("j"), "    "),
        f"Run `{made('j')}` here.\n",
    ],
)
def test_a_block_of_code_is_a_job(tmp_path: Path, block: str) -> None:
    found = page(tmp_path, f"# Title\n\n{block}\nEnd\n")
    spec = {"workerPoolSpecs": [{"containerSpec": {"imageUri": "a/b/c:1"}}]}
    assert names(found) == ["j"]
    pool = found.jobs[0].spec["workerPoolSpecs"][0]
    assert pool["containerSpec"] == spec["workerPoolSpecs"][0]["containerSpec"]
    assert found.remarks == []


@pytest.mark.parametrize("language", ["yaml", "yml", "json", "YAML", ""])
def test_a_block_of_yaml_is_a_job_by_the_pages_name(tmp_path: Path, language: str) -> None:
    found = page(tmp_path, f"{fenced(YAML, language)}\n{fenced('maxTrialCount: 2', 'yaml')}")
    assert found == SourceContents(
        jobs=[ImportedJob("guide", SPEC)], remarks=["blocks without a job: at lines 6"]
    )


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
            "pools = [{'container_spec': {'image_uri': IMAGE}}]\nchange(pools)\n"
            "aiplatform.CustomJob('j', pools).run()",
            "python",
        ),
    ]
    found = page(tmp_path, "".join(blocks))
    [job] = found.jobs
    assert (job.name, job.spec["workerPoolSpecs"]) == (
        "j", [{"containerSpec": {"imageUri": "a/b/c:1"}}]
    )  # fmt: skip
    assert job.notes == [Note("`change(…)` gets it, and is not read", "guide.md, line 27")]
    broken, left = found.remarks
    assert broken.startswith(f"line 17: {tmp_path}/guide.md:")
    assert left == "blocks without a job: at lines 7, 10, 13, 17, 20, 23"


def test_a_search_in_a_page_has_the_counts_of_gcloud(tmp_path: Path) -> None:
    [job] = page(tmp_path, fenced(f"studySpec: {{}}\ntrialJobSpec:\n  {YAML}", "yaml")).jobs
    assert job.study == {"studySpec": {}, "maxTrialCount": 1, "parallelTrialCount": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"```sh\n{made('a')}\n~~~\n```\n", ["a"]),
        (f"```sh\n{made('a')}\n", ["a"]),
        (f"~~~sh\n{made('a')}\n", []),
        (f"```sh\n```\n{made('a')}\n", []),
        (f"````sh\n{made('a')}\n```\n{made('b')}\n````\n", ["a", "b"]),
        (f"```sh\n{made('a')}\n```\n\n    {made('b')}\n", ["a"]),
        (f"```sh\n{made('a')}\n```\nor `{made('b')}` and `ls`, `{made('c')}`\n", ["a", "b", "c"]),
        (f"```\n`{made('a')}`\n```\n", ["a"]),
        (f"``{made('a')}``\n\n    {made('b')}\n", ["b"]),
        (f"    {made('a')} \\\n      --labels=a=b\n\n    {made('b')}\nText\n\n    {made('c')}\n",
         ["a", "b", "c"]),
        (f"   {made('a')}\n\n    {made('b')}\n", ["b"]),
    ],
)  # fmt: skip
def test_what_is_code_of_a_page_and_what_is_text(
    tmp_path: Path, text: str, found: list[str]
) -> None:
    text += f"\n{fenced(made('last'), 'sh')}" if "```" in text else f"\n    {made('last')}\n"
    assert sorted(names(page(tmp_path, text))) == [*found, "last"]


def test_the_line_of_a_command_in_a_page_is_told(tmp_path: Path) -> None:
    line = f"{made('j')} --tomorrow=1"
    for text in (f"a\n\n{fenced(line, 'sh')}", f"a\n\n\nb `{line}`\n", f"a\n\n\n    {line}\n"):
        [job] = page(tmp_path, text).jobs
        assert job.remarks == ["gcloud's --tomorrow is not read (guide.md, line 4)"]


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


@pytest.mark.parametrize(
    ("key", "is_set"),
    [("containerSpec", True), ("container_spec", False)],
)
def test_arguments_go_to_pools_of_files_in_camel_case_alone(
    tmp_path: Path, key: str, is_set: bool
) -> None:
    (tmp_path / "cfg.yaml").write_text(YAML.replace("containerSpec", key))
    [job] = page(tmp_path, f"{SCRIPT.format('cfg.yaml').rstrip()} --args=a\n", "x.sh").jobs
    task = {"imageUri": "a/b/c:1"} | ({"args": ["a"]} if is_set else {})
    assert job.spec["workerPoolSpecs"] == [{"containerSpec": task}]
    assert job.remarks == ([] if is_set else [
        "gcloud leaves out --args and --command beside a file in snake case (x.sh, line 1)"
    ])  # fmt: skip


@pytest.mark.parametrize("text", [None, "a: 1\n", "workerPoolSpecs: ["])
def test_a_file_that_is_no_job_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "cfg.yaml").write_text(text)
    [job] = page(tmp_path, SCRIPT.format("cfg.yaml"), "x.sh").jobs
    said = "gcloud reads cfg.yaml, which is not beside the source (x.sh, line 1)"
    assert job == ImportedJob("j", {"workerPoolSpecs": []}, remarks=[said])


def test_python_within_a_script_is_read_where_it_makes_a_job(tmp_path: Path) -> None:
    text = f"python3 - <<'EOF'\nimport os\nos.x(\nEOF\npython - <<EOF\n{JOB}EOF\n"
    found = page(tmp_path, text, "x.sh")
    assert (names(found), found.remarks) == (["j"], [])
