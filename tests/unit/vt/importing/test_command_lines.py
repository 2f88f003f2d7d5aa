"""Lines for a shell: their words, the files that they write, and the flags of gcloud in them."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing.batch_messages import of_command
from vertex_training_cli.importing.command_lines import (
    NO_FILES,
    Script,
    job_of,
    options_of,
    split,
)
from vertex_training_cli.importing.imported import ImportedJob, from_message

PLAIN = (
    r"""
a b  c
a 'b c' d
a "b c" d
a'b'"c"
'' "" a
a\ b c
"a\"b" c
"a\nb"
'a\nb'
"a\\b" a\\b
a=b --c="d e"
"$" '$'
'a\$b' 'c\\d' 'e\' f
a "b
c" d
""".strip("\n")
    .replace('b\nc" d', 'b c" d')
    .splitlines()
)


@pytest.mark.parametrize("line", PLAIN)
def test_words_of_a_line_are_those_of_a_shell(line: str) -> None:
    assert split(line) == (shlex.split(line), [])


@pytest.mark.parametrize(
    ("line", "words", "files"),
    [
        ("", [], []),
        ("a b; c", ["a", "b"], []),
        ("a b && c", ["a", "b"], []),
        ("a b | c", ["a", "b"], []),
        ("(a b) c", [], []),
        ("a b) c", ["a", "b"], []),
        ("a # b", ["a"], []),
        ("a#b c", ["a#b", "c"], []),
        ("a > f b", ["a", "b"], ["f"]),
        ("a >f", ["a"], ["f"]),
        ("a >> f", ["a"], ["f"]),
        ("a 2>&1 b", ["a", "b"], []),
        ("a < f b", ["a", "b"], []),
        ("a >f 2>&1", ["a"], ["f"]),
        ("a > 'f g'", ["a"], ["f g"]),
        ("a <NAME> b", ["a", "<NAME>", "b"], []),
        ("a=<NAME_1>/b", ["a=<NAME_1>/b"], []),
        ("a 3 > f", ["a", "3"], ["f"]),
    ],
)
def test_a_command_ends_and_writes_as_in_a_shell(
    line: str, words: list[str], files: list[str]
) -> None:
    assert split(line) == (words, files)


VALUES = {"one": ["x"], "two": ["x y"], "all": ["p q", "r"], "none": [""]}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$one a", ["x", "a"]),
        ("a$one", ["ax"]),
        ("${one}b", ["xb"]),
        ("$two", ["x", "y"]),
        ('"$two"', ["x y"]),
        ("'$two'", ["$two"]),
        ('"${all[@]}"', ["p q", "r"]),
        ('a"${all[@]}"b', ["ap q", "rb"]),
        ("$none a", ["a"]),
        ('"$none" a', ["", "a"]),
        (r"\$one", ["$one"]),
    ],
)
def test_values_of_variables_are_words_by_their_quotes(line: str, words: list[str]) -> None:
    def value(match: Any) -> list[str]:
        return [match["escaped"]] if match["escaped"] else VALUES[match["name"] or match["braced"]]

    assert split(line, value)[0] == words


@pytest.mark.parametrize(
    ("words", "flags", "unread"),
    [
        ("--a=b --c d", [("a", "b"), ("c", "d")], []),
        ("--a --b=c", [("a", "true"), ("b", "c")], []),
        ("--a", [("a", "true")], []),
        ("-q x --a -q", [("quiet", "true"), ("a", "-q")], ["x"]),
        ("--quiet x --async y", [("quiet", "true"), ("async", "true")], ["x", "y"]),
        ("--args --x=1", [("args", "--x=1")], []),
        ("--region --x", [("region", "true"), ("x", "true")], []),
        ("-- x -y", [], ["--", "x", "-y"]),
        ("--a=b=c", [("a", "b=c")], []),
        ("--config /dev/stdin --a=/dev/stdin", [("config", "-"), ("a", "/dev/stdin")], []),
    ],
)
def test_flags_have_values_beside_or_behind_them(
    words: str, flags: list[tuple[str, str]], unread: list[str]
) -> None:
    assert options_of("k", words.split(), "here") == {
        "kind": "k", "flags": flags, "place": "here", "unread": unread,
    }  # fmt: skip


class Files:
    """A job of Vertex AI in one file, and the bytes of another."""

    def config(self, file: str) -> ImportedJob | None:
        if file not in ("c.yaml", "snake.yaml"):
            return None
        pools = [{"containerSpec": {"imageUri": "a/b/c:1", "args": ["old"]}},
                 {"pythonPackageSpec": {"pythonModule": "m"}}]  # fmt: skip
        message = {
            "displayName": "inside",
            "labels": {"a": "b"},
            "jobSpec": {"workerPoolSpecs": pools},
        }
        found = from_message(message, "n")
        found.in_snake_case = file == "snake.yaml"
        return found

    def data(self, file: str) -> bytes | None:
        return {"commands": b"x\ny z\n", "job.json": b'{"taskGroups": [{"taskCount": "2"}]}'}.get(
            file
        )


def job(words: str, kind: str = "custom-jobs", files: Any = None) -> ImportedJob:
    return job_of(options_of(kind, shlex.split(words), "here"), "nameless", files or Files())


POOL = "machine-type=n1-standard-4,replica-count=2,container-image-uri=a/b/c:1"


def test_a_flag_takes_the_next_word_unless_it_is_a_switch() -> None:
    words = "fit --verbosity debug --quiet more --async --region europe-west4 --labels --args --x=1"
    assert options_of("custom-jobs", words.split(), "here") == {
        "kind": "custom-jobs",
        "flags": [
            ("verbosity", "debug"), ("quiet", "true"), ("async", "true"),
            ("region", "europe-west4"), ("labels", "true"), ("args", "--x=1"),
        ],
        "place": "here",
        "unread": ["fit", "more"],
    }  # fmt: skip


def test_the_flags_of_a_job_are_its_fields() -> None:
    found = job(
        "--display-name='My Job' --region=europe-west4 --labels=a=b,c=d --labels=e=f "
        f"--worker-pool-spec={POOL} --network=n --service-account=s --enable-web-access "
        "--enable-dashboard-access=true --persistent-resource-id=p --kms-key=k --args=--x=1,--y "
        "--args='^;^z,1;2' --command=python --command=-m --project=acme --format=json"
    )
    task = {
        "imageUri": "a/b/c:1",
        "args": ["--x=1", "--y", "z,1", "2"],
        "command": ["python", "-m"],
    }
    machine = {"machineType": "n1-standard-4"}
    assert found == ImportedJob(
        "my-job",
        {
            "workerPoolSpecs": [
                {"replicaCount": 2, "machineSpec": machine, "containerSpec": task}
            ],
            "network": "n", "serviceAccount": "s", "enableWebAccess": True,
            "enableDashboardAccess": True, "persistentResourceId": "p",
        },
        labels={"a": "b", "c": "d", "e": "f"}, encryption_key="k", region="europe-west4",
        project="acme",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "pool", "remarks"),
    [
        ("container-image-uri=i", {
            "replicaCount": 1, "machineSpec": {"machineType": "<MACHINE_TYPE>"},
            "containerSpec": {"imageUri": "i"}}, []),
        ("machine-type=m,accelerator-type=nvidia-tesla-t4", {
            "replicaCount": 1, "machineSpec": {
                "machineType": "m", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}},
         []),
        ("machine-type=m,accelerator-type=NVIDIA_L4,accelerator-count=4,replica-count=<N>", {
            "replicaCount": "<N>", "machineSpec": {
                "machineType": "m", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 4}}, []),
        ("machine-type=m,executor-image-uri=e", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "pythonPackageSpec": {
                "executorImageUri": "e", "packageUris": [], "pythonModule": ""}}, []),
        ("machine-type=m,python-module=p", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "pythonPackageSpec": {
                "executorImageUri": "", "packageUris": [], "pythonModule": "p"}}, []),
        ("machine-type=m,executor-image-uri=e,python-module=p", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "pythonPackageSpec": {
                "executorImageUri": "e", "packageUris": [], "pythonModule": "p"}}, []),
        ("machine-type=m,replica-count=999999999", {
            "replicaCount": 999999999, "machineSpec": {"machineType": "m"}}, []),
        ("machine-type=m,replica-count=1000000000", {
            "replicaCount": "1000000000", "machineSpec": {"machineType": "m"}}, []),
        ("machine-type=m,tomorrow=1,more=2", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"}},
         ["tomorrow=1, more=2 of --worker-pool-spec is not read (here)"]),
        ("machine-type=m,local-package-path=src,script=t.py,output-image-uri=o,python-module=p,"
         "executor-image-uri=e,requirements=r,extra-packages=x,extra-dirs=d", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "containerSpec": {"imageUri": "o"}},
         ["gcloud builds an image of src, an import does not (here): `vt new image` makes one"]),
        ("machine-type=m,local-package-path=src", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "containerSpec": {"imageUri": "<YOUR_IMAGE>"}},
         ["gcloud builds an image of src, an import does not (here): `vt new image` makes one"]),
        ("machine-type=", {}, []),
        ("", {}, []),
        ("<ARG_1>", {}, ["<ARG_1> of --worker-pool-spec is not read (here)"]),
        ("^:^machine-type=m:container-image-uri=i", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "containerSpec": {"imageUri": "i"}}, []),
    ],
)  # fmt: skip
def test_a_pool_is_what_its_keys_say(spec: str, pool: Any, remarks: list[str]) -> None:
    found = job(f"--display-name=j --worker-pool-spec='{spec}'")
    assert (found.spec, found.remarks) == ({"workerPoolSpecs": [pool]}, remarks)


def test_packages_and_arguments_are_those_of_every_pool() -> None:
    found = job(
        "--display-name=j --worker-pool-spec=machine-type=m,executor-image-uri=e,python-module=p "
        "--worker-pool-spec=machine-type=m,container-image-uri=i --python-package-uris=gs://b/a,"
        "gs://b/c --args=1 --command=run"
    )
    python, container = found.spec["workerPoolSpecs"]
    assert python["pythonPackageSpec"] == {
        "executorImageUri": "e", "packageUris": ["gs://b/a", "gs://b/c"], "pythonModule": "p",
        "args": ["1"],
    }  # fmt: skip
    assert container["containerSpec"] == {"imageUri": "i", "args": ["1"], "command": ["run"]}


def test_a_pool_of_a_package_alone_has_its_address() -> None:
    [pool] = job("--worker-pool-spec=machine-type=m --python-package-uris=gs://b/a").spec[
        "workerPoolSpecs"
    ]
    assert pool["pythonPackageSpec"] == {
        "executorImageUri": "", "packageUris": ["gs://b/a"], "pythonModule": "",
    }  # fmt: skip


def test_a_file_gives_what_flags_do_not() -> None:
    found = job("--config=c.yaml --args=new --command=run --labels=c=d")
    assert (found.name, found.labels) == ("nameless", {"a": "b", "c": "d"})
    assert found.spec["workerPoolSpecs"] == [
        {"containerSpec": {"imageUri": "a/b/c:1", "args": ["new"], "command": ["run"]}},
        {"pythonPackageSpec": {"pythonModule": "m", "args": ["new"]}},
    ]
    kept = job("--config=c.yaml --display-name=given")
    assert kept.name == "given"
    assert kept.spec["workerPoolSpecs"][0]["containerSpec"]["args"] == ["old"]
    flags = job(f"--config=c.yaml --worker-pool-spec={POOL}")
    assert len(flags.spec["workerPoolSpecs"]) == 1


@pytest.mark.parametrize(
    ("words", "remarks"),
    [
        ("--config=gone.yaml",
         ["gcloud reads gone.yaml, which is not beside the source (here)"]),
        ("--config=gone.yaml --args=1,2 --command=run",
         ["gcloud reads gone.yaml, which is not beside the source: each of its pools gets "
          "--command=run --args=1,2 (here)"]),
        ("--config=", ["gcloud reads a file, which is not beside the source (here)"]),
        ("--config=snake.yaml", []),
        ("--config=snake.yaml --args=1",
         ["gcloud leaves out --args and --command beside a file in snake case (here)"]),
        ("--config=snake.yaml --command=run",
         ["gcloud leaves out --args and --command beside a file in snake case (here)"]),
        (f"--config=snake.yaml --args=1 --worker-pool-spec={POOL}", []),
        (f"--worker-pool-spec={POOL} --tomorrow=1 --tomorrow=2 --x",
         ["gcloud's --tomorrow is not read (here)", "gcloud's --x is not read (here)"]),
        (f"--worker-pool-spec={POOL} --quiet more words", ["`more words` is not read (here)"]),
    ],
)  # fmt: skip
def test_what_of_a_command_is_not_read_is_said(words: str, remarks: list[str]) -> None:
    assert job(words, files=Files()).remarks == remarks


@pytest.mark.parametrize(
    ("words", "study"),
    [
        ("", {"maxTrialCount": 1, "parallelTrialCount": 1}),
        ("--max-trial-count=8 --parallel-trial-count=2 --algorithm=random",
         {"maxTrialCount": 8, "parallelTrialCount": 2,
          "studySpec": {"algorithm": "RANDOM_SEARCH"}}),
        ("--algorithm=grid-search",
         {"maxTrialCount": 1, "parallelTrialCount": 1, "studySpec": {"algorithm": "GRID_SEARCH"}}),
        ("--config=gone.yaml --max-trial-count=many",
         {"maxTrialCount": "many", "parallelTrialCount": "<PARALLEL_TRIAL_COUNT>"}),
    ],
)  # fmt: skip
def test_a_search_has_the_counts_of_its_flags(words: str, study: dict[str, Any]) -> None:
    found = job(f"--display-name=hp --worker-pool-spec={POOL} {words}", "hp-tuning-jobs")
    assert found.study == {**study, "displayName": "hp"}


SCRIPT = f"--worker-pool-spec={POOL}"
LINE = f"gcloud ai custom-jobs create --display-name=$NAME {SCRIPT}"


@pytest.mark.parametrize(
    ("before", "name", "notes"),
    [
        ("NAME=a", "a", []),
        ("export NAME='a b'", "a", []),
        ('NAME="a"; OTHER=x', "a", []),
        ("X=a; NAME=$X-b", "a-b", []),
        ("NAME=a\nNAME+=-b", "a-b", []),
        ("NAME=a\nunset NAME", "nameless", []),
        ("NAME=${OTHER:-d}", "d", [("'d' is the default of OTHER", True)]),
        ("NAME=$(date +%s)-a", "a", []),
        ("NAME=a\nif x; then\n  NAME=b\nfi", "a",
         [("NAME is 'a' unless a branch or loop sets it", True)]),
        ("if x; then\n  NAME=b\nfi", "your-name",
         [("NAME is '<YOUR_NAME>' unless a branch or loop sets it", False)]),
        ("test x && NAME=b", "your-name",
         [("NAME is '<YOUR_NAME>' unless a branch or loop sets it", False)]),
        ("NAME=b command", "your-name", []),
        ("# NAME=b", "your-name", []),
        ("NAME=$1", "arg-1", []),
        ("NAME=${#X}", "your-x", []),
        ("NAME=`git rev-parse HEAD`", "your-head", []),
    ],
)  # fmt: skip
def test_a_variable_has_the_value_that_a_line_before_gave_it(
    before: str, name: str, notes: list[tuple[str, bool]]
) -> None:
    script = Script("s", NO_FILES)
    script.visit(f"{before}\n{LINE}\n", "nameless")
    [found] = script.jobs
    assert found.name == name
    assert [(note.text, note.guessed) for note in found.notes] == notes


def test_a_job_in_a_branch_and_one_that_is_only_printed_are_said() -> None:
    def notes(text: str) -> list[str]:
        script = Script("s", NO_FILES)
        script.visit(text, "n", first=5)
        return [str(note) for each in script.jobs for note in each.notes]

    made = LINE.replace("$NAME", "j")
    assert notes(f"if x; then\n{made}\nfi\n") == [
        "it is made in a branch or loop, which is read once (s, line 6)"
    ]
    assert notes(f"for x in y; do\n:\ndone\n{made}\n") == []
    printed = "the script prints this command, and does not run it (s, line 5)"
    assert notes(f"echo {made}\n") == [printed]
    assert notes(f"echo {made}\n{made}\n") == []  # it runs as well


def batch(words: str) -> Any:
    options = options_of("batch", shlex.split(words), "here")
    return of_command(options["flags"], options["unread"], Files().data)


def test_what_gcloud_sends_to_batch_is_a_step_before_those_of_the_file() -> None:
    found = batch(
        "fit-1 --location=europe-west4 --config=job.json --script-text='run it' --priority=7 "
        "--machine-type=n1-standard-4 --provisioning-model=spot --network=n --subnetwork=s "
        "--no-external-ip-address --tomorrow=1 more"
    )
    assert (found.name, found.region) == ("fit-1", "europe-west4")
    assert found.fields == {
        "taskGroups": [
            {"taskCount": "2", "taskSpec": {"runnables": [{"script": {"text": "run it"}}]}}
        ],
        "priority": "7",
        "allocationPolicy": {
            "instances": [
                {"policy": {"machineType": "n1-standard-4", "provisioningModel": "SPOT"}}
            ],
            "network": {
                "networkInterfaces": [
                    {"network": "n", "subnetwork": "s", "noExternalIpAddress": True}
                ]
            },
        },
    }
    assert found.remarks == ["gcloud's --tomorrow is not read", "`more` is not read"]


def test_a_container_of_batch_has_image_entrypoint_and_lines() -> None:
    def step(words: str) -> Any:
        return batch(words).fields["taskGroups"][0]["taskSpec"]["runnables"]

    container = "--container-image-uri=i --container-entrypoint=e"
    assert step(f"{container} --container-commands-file=commands") == [
        {"container": {"imageUri": "i", "entrypoint": "e", "commands": ["x", "y z"]}}
    ]
    assert step("--container-image-uri=i") == [{"container": {"imageUri": "i"}}]
    gone = batch(f"{container} --container-commands-file=gone")
    assert gone.remarks == ["gcloud reads gone, which is not beside the source: its lines are args"]
    assert step("--script-file-path=s.sh") == [{"script": {"text": "s.sh"}}]
    assert "taskSpec" not in batch("--network=n").fields["taskGroups"][0]
    assert "allocationPolicy" not in batch("--network=n").fields


@pytest.mark.parametrize(
    ("words", "name", "region"),
    [
        ("projects/p/locations/us-east1/jobs/a", "a", "us-east1"),
        ("projects/p/locations/us-east1/jobs/a --location=eu", "a", "eu"),
        ("a", "a", ""),
        ("--job-prefix=pre", "pre", ""),
        ("a/b", "b", ""),
        ("", "", ""),
    ],
)
def test_a_job_of_batch_is_named_by_the_caller(words: str, name: str, region: str) -> None:
    found = batch(words)
    assert (found.name, found.region) == (name, region)


def test_a_job_of_batch_whose_file_is_not_there_is_none() -> None:
    with pytest.raises(CommandError, match=r"gcloud reads x\.json .*: import that file"):
        batch("--config=x.json")
