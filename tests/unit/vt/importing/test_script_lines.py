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
        ("A := x", "$(A)", "x", []),
        ("A = x", "${A}", "x", []),
        ("A = x  ", "$(A)y", "xy", []),
        ("A ?= x", "$(A)", "x", [("'x' is the default of A", True)]),
        ("A = x\nA ?= y", "$(A)", "y", [("'y' is the default of A", True)]),
        ("A = x\nA += y", '"$(A)"', "x y", []),
        ("A = x\nB = $(A)-y", "$(B)", "x-y", []),
        ("export A = x", "$(A)", "x", []),
        ("", "$$A", "<YOUR_A>", []),
        ("", "$(A)", "<YOUR_A>", []),
        ("A = x\nall: A\n\t@echo $(A)", "$(A)", "x", []),
    ],
)
def test_a_variable_of_a_makefile(
    before: str, value: str, found: str, notes: list[tuple[str, bool]]
) -> None:
    assert labels(before, value, is_make=True) == (found, notes)


@pytest.mark.parametrize("prefix", ["\t", "\t@", "\t-", "\t@-"])
def test_a_recipe_of_a_makefile_is_a_command(prefix: str) -> None:
    assert job(f"all:\n{prefix}{CREATE} {POOL}\n", is_make=True).name == "j"


@pytest.mark.parametrize(
    ("before", "value", "found", "notes"),
    [
        ("A=x", "$A", "x", []),
        ("A=x", "${A}y", "xy", []),
        ("A=", "$A", "", []),
        ("readonly A=x", "$A", "x", []),
        ("local A=x", "$A", "x", []),
        ("declare -r A=x", "$A", "x", []),
        ("typeset A=x", "$A", "x", []),
        ("A=x B=y", "$A$B", "xy", []),
        ("A=(x y)", "$A", "x", []),
        ("A=(x y)", '"$A"', "x", []),
        ("A=(x y)", '"${A[*]}"', "x y", []),
        ("A=(x\n  y # why\n  z)", '"${A[*]}"', "x y z", []),
        ("A=(x)\nA+=(y)", '"${A[*]}"', "x y", []),
        ("A=x\nA+=y", "$A", "xy", []),
        ("A+=y", "$A", "y", []),
        ("A=x\nB=y; unset A B", "${A}-$B", "-", []),
        ("A=x\nB=$A\nA=z", "$B", "x", []),
        ("A=${B:-x}", "$A", "x", [("'x' is the default of B", True)]),
        ("", "${B-x}", "x", [("'x' is the default of B", True)]),
        ("", "${B:=x}", "x", [("'x' is the default of B", True)]),
        ("", "${B:-'x y'}", "x", [("'x y' is the default of B", True)]),
        ("C=z", "${B:-$C}", "z", [("'z' is the default of B", True)]),
        ("C=z", "${B:-${C}-x}", "z-x", [("'z-x' is the default of B", True)]),
        ("B=y", "${B:-x}", "y", []),
        ("B=y", "${B:?why}", "y", []),
        ("A=x", "${A%y}", "<YOUR_A>", []),
        ("A=x", "${A/x/y}", "<YOUR_A>", []),
        ("A=x", "${#A}", "<YOUR_A>", []),
        ("A=x", "${!A}", "<YOUR_A>", []),
        ("", "$'x'", "<YOUR_TEXT>", []),
        ("", "$1", "<ARG_1>", []),
        ("", "$@", "<YOUR_ARGUMENTS>", []),
        ("", "$*", "<YOUR_ARGUMENTS>", []),
        ("", "%NAME%", "<YOUR_NAME>", []),
        ("", "$(date +%s)", "${job.requestId}", []),
        ("", "`date`", "${job.requestId}", []),
        ("", "$(git rev-parse HEAD)", "<YOUR_HEAD>", []),
        ("", "$(x $(y z))", "<YOUR_Z>", []),
        ("", "$(1)", "<YOUR_VALUE>", []),
        ("", r"\$A", "$A", []),
        ("A=x", "'$A'", "$A", []),
        ("A='x;y'", '"$A"', "x;y", []),
        ("A=x && B=y", "$A", "x", []),
        ("true || A=y", "$A", "<YOUR_A>",
         [("A is '<YOUR_A>' unless a branch or loop sets it", False)]),
        ("A=x\nfor a in b; do A=y; done", "$A", "x",
         [("A is 'x' unless a branch or loop sets it", True)]),
        ("A=x\nwhile y; do\n  A=x\ndone", "$A", "x", []),
        ("A=x\ncase $1 in\n  a) A=y;;\nesac", "$A", "x",
         [("A is 'x' unless a branch or loop sets it", True)]),
        ("if x; then\n  A=y\nfi\nA=z", "$A", "z", []),
    ],
)  # fmt: skip
def test_a_variable_of_a_shell(
    before: str, value: str, found: str, notes: list[tuple[str, bool]]
) -> None:
    assert labels(before, value) == (found, notes)


def test_what_is_said_of_a_variable_is_said_of_those_made_of_it() -> None:
    said = [("'x' is the default of A", True)]
    assert labels("B=${A:-x}\nC=$B-y", "$C") == ("x-y", said)
    assert labels("B=${A:-x}\nB=z", "$B") == ("z", [])
    assert labels("B=${A:-x}\nB+=z", "$B") == ("xz", said)


@pytest.mark.parametrize(("how", "defaults"), [(">>", "AB"), (">", "B")])
def test_what_is_said_of_a_file_is_said_of_its_job(how: str, defaults: str) -> None:
    found = job(f"echo ${{A:-x}} > f\necho ${{B:-x}} {how} f\n{CREATE} --config=f\n")
    assert [each.text for each in found.notes] == [f"'x' is the default of {n}" for n in defaults]


def test_what_is_said_of_a_job_is_in_order() -> None:
    value = "".join(f"${{{name}:-x}}" for name in "EBDAFC")
    said = [(f"'x' is the default of {name}", True) for name in "ABCDEF"]
    assert labels("", value) == ("xxxxxx", said)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > f.yaml <<EOF\na: $A\nEOF\n", {"f.yaml": "a: <YOUR_A>\n"}),
        ("cat > f.yaml <<'EOF'\na: $A\nEOF\n", {"f.yaml": "a: $A\n"}),
        ('cat > f.yaml <<"EOF"\na: $A\nEOF\n', {"f.yaml": "a: $A\n"}),
        ("cat <<-EOF > f.yaml\n\ta\n\t\t b\n\tEOF\n", {"f.yaml": "a\n b\n"}),
        ("cat <<EOF > f.yaml\n\ta\nEOF\n", {"f.yaml": "\ta\n"}),
        ("cat <<- 'EOF' > f.yaml\n\t$A\n\tEOF\n", {"f.yaml": "$A\n"}),
        ("A=x\ncat <<EOF >> f.yaml\n$A\nb\nEOF\nA=y\n", {"f.yaml": "x\nb\n"}),
        ("echo a > f\necho b >> f\ncat >> f <<EOF\nc\nEOF\n", {"f": "a\nb\nc\n"}),
        ("echo a >> f\necho '>>' > f\necho c > g\n", {"f": ">>\n", "g": "c\n"}),
        ("cat <<EOF | tee f.yaml\na\nEOF\n", {}),
        ("cat > f.yaml <<EOF\nopen\n", {"f.yaml": "open\n"}),
        ("A=x\necho \"a: $A\" > f.yaml\n", {"f.yaml": "a: x\n"}),
        ("printf 'a: 1' > f.yaml\n", {"f.yaml": "a: 1\n"}),
        ("echo a 2> err\n", {"err": "a\n"}),
        ("echo a\n", {}),
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


def test_a_message_in_a_variable_may_hold_lines() -> None:
    text = 'MSG=$(cat <<EOF\nl1 $A\nl2\nEOF\n)\necho "$MSG" > f\n'
    assert script(text).files == {"f": "l1 <YOUR_A>\nl2\n\n"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"\n{CREATE} {POOL} --x=1", 2),
        (f"{CREATE} \\\n  {POOL} \\\n  --x=1", 1),
        (f"# {CREATE}\n{CREATE} {POOL} --x=1", 2),
        (f"A='l1\nl2'\n{CREATE} {POOL} --x=1", 3),
        (f"cat <<EOF\n{CREATE}\nEOF\n{CREATE} {POOL} --x=1", 4),
        (f"gcloud beta ai custom-jobs create --display-name=j {POOL} --x=1", 1),
        (f"gcloud  alpha  ai custom-jobs  create --display-name=j {POOL} --x=1", 1),
        (f"X=$({CREATE} {POOL} --x=1)", 1),
        (f"a && {CREATE} {POOL} --x=1 || b", 1),
        (f"{CREATE} `\n  {POOL} `\n  --x=1", 1),
        (f"{CREATE} ^\n  {POOL} ^\n  --x=1", 1),
    ],
)
def test_a_command_is_told_with_its_line(text: str, line: int) -> None:
    found = job(text)
    assert found.remarks == [f"gcloud's --x is not read (s, line {line})"]
    assert found.spec["workerPoolSpecs"][0]["containerSpec"] == {"imageUri": "i"}


@pytest.mark.parametrize(
    "text",
    [
        "gcloud ai custom-jobs list", "gcloud ai custom-jobs created",
        "gcloudai custom-jobs create", f"# {CREATE}", "gcloud batch jobs describe j",
    ],
)  # fmt: skip
def test_other_commands_make_no_job(text: str) -> None:
    assert script(text).jobs == []


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ('CMD="$CMD --network=n"', ['`CMD="$CMD --network=n"` is not read (s, line 2)']),
        ("CMD+=' --network=n'", ["`CMD+=' --network=n'` is not read (s, line 2)"]),
        ("  ${CMD} --network=n --async", ["`${CMD} --network=n --async` is not read (s, line 2)"]),
        ("$CMD\neval $CMD --async", ["`eval $CMD --async` is not read (s, line 3)"]),
        (f"$CMD --network={'n' * 80}", [f"`$CMD --network={'n' * 65}` is not read (s, line 2)"]),
        ("$CMD $X --network=$CMD", ["`$CMD $X --network=$CMD` is not read (s, line 2)"]),
        ("$CMD", []),
        ("$CMD2 --network=n; eval $CMD", []),
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


@pytest.mark.parametrize(
    ("flags", "spec"),
    [
        (
            "--network=n --service-account=a --persistent-resource-id=p",
            {"network": "n", "serviceAccount": "a", "persistentResourceId": "p"},
        ),
        (
            "--enable-web-access --enable-dashboard-access",
            {"enableWebAccess": True, "enableDashboardAccess": True},
        ),
        ("--async --quiet --verbosity --format=json --project=p", {}),
    ],
)
def test_flags_are_fields_of_the_job(flags: str, spec: dict[str, Any]) -> None:
    found = job(f"{CREATE} {POOL} {flags}")
    pools = found.spec.pop("workerPoolSpecs")
    assert (found.spec, len(pools), found.remarks) == (spec, 1, [])


@pytest.mark.parametrize(
    ("algorithm", "field"),
    [("random", "RANDOM_SEARCH"), ("grid", "GRID_SEARCH"), ("random-search", "RANDOM_SEARCH"),
     ("algorithm-unspecified", "ALGORITHM_UNSPECIFIED")],
)  # fmt: skip
def test_an_algorithm_is_the_apis_word(algorithm: str, field: str) -> None:
    line = f"gcloud ai hp-tuning-jobs create --display-name=h --algorithm={algorithm}"
    assert job(line).study == {
        "maxTrialCount": 1, "parallelTrialCount": 1, "displayName": "h",
        "studySpec": {"algorithm": field},
    }  # fmt: skip


def test_a_search_that_is_only_printed_and_an_array_without_an_end() -> None:
    found = job("echo gcloud ai hp-tuning-jobs create --display-name=h --max-trial-count=3")
    assert found.study == {"maxTrialCount": 3, "parallelTrialCount": 1, "displayName": "h"}
    assert script("A=(x\n  y").jobs == []


@pytest.mark.parametrize(
    "line",
    [
        "gcloud --project p ai custom-jobs create",
        "gcloud --project=p -q --account $ME ai custom-jobs create",
        "gcloud beta --quiet --project 'p' ai custom-jobs --verbosity=debug create",
        "gcloud alpha ai --format json custom-jobs create --project=p",
    ],
)
def test_flags_stand_between_the_words_of_gcloud_as_well(line: str) -> None:
    found = job(f"{line} --region=r --display-name=j {POOL}")
    assert (found.name, found.region, found.project) == ("j", "r", "p")
    assert [each for each in found.remarks if "account" not in each] == []


def test_another_word_between_makes_it_another_command() -> None:
    line = "gcloud config set ai custom-jobs create"
    assert script(f"{line} --display-name=j {POOL}").jobs == []


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
