"""Lines of scripts and Makefiles in their order: variables, files that they write, programs."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.importing.command_lines import NO_FILES, Script
from vertex_training_cli.importing.imported import ImportedJob

CREATE = "gcloud ai custom-jobs create --display-name=j"
POOL = "--worker-pool-spec=machine-type=m,container-image-uri=i"


def script(text: str, *, is_make: bool = False) -> Script:
    found = Script("s", NO_FILES)
    found.visit(text, "nameless", is_make=is_make)
    return found


def job(text: str, *, is_make: bool = False) -> ImportedJob:
    [found] = script(text, is_make=is_make).jobs
    return found


def labels(before: str, value: str, *, is_make: bool = False) -> tuple[Any, list[tuple[str, bool]]]:
    """The label that a value becomes behind some lines, and what is said."""
    tab = "\t" if is_make else ""
    found = job(f"{before}\n{tab}{CREATE} {POOL} --labels=l={value}\n", is_make=is_make)
    return found.labels["l"], [(note.text, note.guessed) for note in found.notes]


@pytest.mark.parametrize(
    ("before", "value", "found", "notes"),
    [
        ("A=", "$A", "", []),
        ("A=x B=y", "$A$B", "xy", []),
        ("A=(x\n  y # why\n  z)", '"${A[*]}"', "x y z", []),
        ("A=(x)\nA+=(y)", '"${A[*]}"', "x y", []),
        ("A=x\nB=y; unset A B", "${A}-$B", "-", []),
        ("A=${B:-x}", "$A", "x", [("'x' is the default of B", True)]),
        ("", "${B:-'x y'}", "x", [("'x y' is the default of B", True)]),
        ("C=z", "${B:-$C}", "z", [("'z' is the default of B", True)]),
        ("A=x", "${A%y}", "<YOUR_A>", []),
        ("A=x", "${#A}", "<YOUR_A>", []),
        ("", "$(date +%s)", "${job.requestId}", []),
        ("", "$(git rev-parse HEAD)", "<YOUR_HEAD>", []),
        ("", r"\$A", "$A", []),
        ("A=x && B=y", "$A", "x", []),
    ],
)  # fmt: skip
def test_a_variable_of_a_shell(
    before: str, value: str, found: str, notes: list[tuple[str, bool]]
) -> None:
    assert labels(before, value) == (found, notes)


@pytest.mark.parametrize(("how", "defaults"), [(">>", "AB"), (">", "B")])
def test_what_is_said_of_a_file_is_said_of_its_job(how: str, defaults: str) -> None:
    found = job(f"echo ${{A:-x}} > f\necho ${{B:-x}} {how} f\n{CREATE} --config=f\n")
    assert [each.text for each in found.notes] == [f"'x' is the default of {n}" for n in defaults]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > f.yaml <<EOF\na: $A\nEOF\n", {"f.yaml": "a: <YOUR_A>\n"}),
        ("cat > f.yaml <<'EOF'\na: $A\nEOF\n", {"f.yaml": "a: $A\n"}),
        ("A=x\ncat <<EOF >> f.yaml\n$A\nb\nEOF\nA=y\n", {"f.yaml": "x\nb\n"}),
        ("cat <<EOF | tee f.yaml\na\nEOF\n", {}),
        ("cat > f.yaml <<EOF\nopen\n", {"f.yaml": "open\n"}),
        ("A=x\necho \"a: $A\" > f.yaml\n", {"f.yaml": "a: x\n"}),
    ],
)  # fmt: skip
def test_files_that_a_script_writes(text: str, files: dict[str, str]) -> None:
    assert script(text).files == files


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("python3 - <<EOF\nx = '$A'\nEOF\n", [("x = '<YOUR_A>'\n", 1)]),
        ("# c\nA=1 python3.11 <<'EOF'\nx = '$A'\nEOF\n", [("x = '$A'\n", 2)]),
        ("python t.py > out <<EOF\nx\nEOF\n", []),
        ("pythonic <<EOF\nx\nEOF\n", []),
    ],
)
def test_programs_that_a_script_runs(text: str, programs: list[tuple[str, int]]) -> None:
    assert script(text).programs == programs


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ('CMD="$CMD --network=n"', ['`CMD="$CMD --network=n"` is not read (s, line 2)']),
        ("CMD+=' --network=n'", ["`CMD+=' --network=n'` is not read (s, line 2)"]),
        ("  ${CMD} --network=n --async", ["`${CMD} --network=n --async` is not read (s, line 2)"]),
        ("$CMD\neval $CMD --async", ["`eval $CMD --async` is not read (s, line 3)"]),
        (f"$CMD --network={'n' * 80}", [f"`$CMD --network={'n' * 65}` is not read (s, line 2)"]),
        ("NCMD+=' --network=n'", []),
    ],
)
def test_what_is_added_to_a_command_in_a_variable_is_told(later: str, said: list[str]) -> None:
    for value in (f'"{CREATE} {POOL}"', f"({CREATE} {POOL})"):
        assert [str(each) for each in job(f"CMD={value}\n{later}\n").notes] == said


def test_a_job_of_batch_that_is_refused_is_left_out_with_its_line() -> None:
    found = script("\ngcloud batch jobs submit j --config=none.json\n")
    assert (found.jobs, found.left_out) == ([], [
        "gcloud reads none.json with a job of Batch, which is not beside the source: import that "
        "file (s, line 2)"
    ])  # fmt: skip


def test_a_search_that_is_only_printed_and_an_array_without_an_end() -> None:
    found = job("echo gcloud ai hp-tuning-jobs create --display-name=h --max-trial-count=3")
    assert found.study == {"maxTrialCount": 3, "parallelTrialCount": 1, "displayName": "h"}
    assert script("A=(x\n  y").jobs == []


@pytest.mark.parametrize("head", ["submit() {", "function submit {", "function submit () {"])
def test_a_function_that_several_lines_call_makes_one_job_and_that_is_said(head: str) -> None:
    made = f'{head}\n  {CREATE} {POOL} --labels=l="$1"\n}}\n'
    told = "it is made in submit, which several lines call and which is read once (s, line 2)"
    for calls in ("submit a\nsubmit b\n", "submit a && submit b\n", "x=$(submit a); submit b\n"):
        assert [str(each) for each in job(made + calls).notes] == [told]
    for calls in ("submit a\n", "# submit a\nsubmit b\n", "echo submit\nsubmit a\n", ""):
        assert job(made + calls).notes == []
    later = f"{made}submit a\nsubmit b\n{CREATE} {POOL}\n"
    assert [len(each.notes) for each in script(later).jobs] == [1, 0]
