"""How a lost state is made again: which imports are tried, asked for and run, round by round."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up import lost_state

BUCKET, GRANT = "gcp:storage/bucket:Bucket", "gcp:storage/bucketIAMMember:BucketIAMMember"
URN = "urn:pulumi:dev::p::t::"
REF = StackRef(Path("/srv/checkout"), "p", "dev", "acme-ml-dev", "us-central1")


def made(name: str, /, *, op: str = "create", type_: str = BUCKET, **inputs: Any) -> dict[str, Any]:
    """A step of a preview; a bucket is imported by its name."""
    state = {"urn": f"{URN}{name}", "type": type_, "inputs": inputs, "parent": f"{URN}storage"}
    return {"op": op, "newState": state}


class Engine:
    """``pulumi`` whose previews and imports end as they are told to; remembers what it got."""

    def __init__(self, previews: list[Any], asked: list[Any], codes: list[int]) -> None:
        self.previews, self.asked, self.codes = previews, asked, codes
        self.got: list[tuple[str, list[str], Any]] = []
        self.refused: Any = FOUND

    def with_variables(self, **variables: str) -> Engine:
        assert variables == {"VT_COMPARES_WITH_CLOUD": "1"}
        return self

    def read_json(self, *arguments: str) -> Any:
        steps, declared = self.previews.pop(0)
        *words, file = arguments
        Path(file).write_text(json.dumps({"resources": declared} if declared else {}))
        self.got.append(("preview", words, None))
        return {"steps": steps}

    def _import(self, arguments: tuple[str, ...]) -> tuple[list[str], Any]:
        words = list(arguments)
        file = words.pop(words.index("--file") + 1)
        return words, json.loads(Path(file).read_text())

    def capture(self, *arguments: str) -> Any:
        if arguments[0] == "preview":
            return self.refused
        self.got.append(("asked", *self._import(arguments)))
        return self.asked.pop(0)

    def run_in_foreground(self, *arguments: str) -> int:
        self.got.append(("ran", *self._import(arguments)))
        return self.codes.pop(0)


def missing(*names: str, **more: Any) -> Any:
    absent = "resource 'x' does not exist\n"
    told = [{"severity": "error", "urn": f"{URN}{name}", "message": absent} for name in names]
    told.append({"severity": "info", "urn": f"{URN}other", "message": "note"})
    return SimpleNamespace(
        returncode=1, stdout=json.dumps({"diagnostics": told}), stderr="", **more
    )


FOUND = SimpleNamespace(returncode=0, stdout="", stderr="")
COMPONENT = {"name": "storage", "type": "x:y:Z", "component": True}
DATA = {"name": "data", "type": BUCKET}
#: The engine gives a name of its own to the second of two that are called alike.
MORE = {"name": "moreBucket", "logicalName": "more", "type": BUCKET}
READ = {"name": "read", "type": GRANT}
STEPS = [
    made("data", name="acme-data"),
    made("more", name="acme-more"),
    made("read", type_=GRANT, bucket="b", role="r", member="m"),
    made("old", op="same", name="acme-old"),
    {"op": "same"},
]
WORDS = ["import", "--stack", "dev", "--file", "--protect=false", "--generate-code=false"]
ASK, RUN = [*WORDS, "--preview-only", "--json"], [*WORDS, "--yes", "--skip-preview"]
PREVIEW = ("preview", ["preview", "--stack", "dev", "--json", "--import-file"], None)


def take_over(engine: Engine, *, write: bool = True) -> tuple[int, list[str]]:
    said: list[str] = []
    code = lost_state.take_over(REF, engine, said.append, write=write)  # type: ignore[arg-type]
    return code, said


def content(*entries: dict[str, Any], parents: dict[str, str] | None = None) -> dict[str, Any]:
    return {"nameTable": parents or {}, "resources": list(entries)}


DONE = [
    "the state of dev has all that is declared and there, but for rights and jobs",
    "next: `vt review --stack dev`, then `vt up`: it adopts the jobs",
]
WITH_DATA = {**DATA, "id": "acme-data"}
WITH_MORE = {**MORE, "id": "acme-more"}


def test_what_is_there_is_imported_and_what_is_not_is_left_out() -> None:
    declared = [COMPONENT, DATA, MORE, READ]
    engine = Engine([(STEPS, declared), ([], [])], [missing("moreBucket"), FOUND], [0])
    imported = "imported: 1 (data)"
    assert take_over(engine) == (0, ["data exists: acme-data", imported, ELSE, NEXT])
    assert engine.got == [
        PREVIEW,
        ("asked", ASK, content(COMPONENT, WITH_DATA, WITH_MORE)),
        ("asked", ASK, content(COMPONENT, WITH_DATA)),
        ("ran", RUN, content(COMPONENT, WITH_DATA)),
        PREVIEW,
    ]


def test_without_being_asked_to_write_nothing_is_imported() -> None:
    engine = Engine([(STEPS, [DATA, MORE])], [FOUND], [])
    assert take_over(engine, write=False) == (
        0,
        [
            "data exists: acme-data",
            "moreBucket exists: acme-more",
            "no resource was imported",
            GRANTED,
            ELSE,
            "to import the existing resources: `vt import --state --stack dev --write`",
        ],
    )
    assert [kind for kind, *_ in engine.got] == ["preview", "asked"]


def test_an_import_that_fails_ends_it_with_its_exit_code() -> None:
    engine = Engine([(STEPS, [DATA])], [FOUND], [255])
    assert take_over(engine) == (255, ["data exists: acme-data"])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (SimpleNamespace(returncode=1, stdout="no json\n", stderr=" broken\n"),
         "`pulumi import` failed: broken"),
        (SimpleNamespace(returncode=1, stdout="no json\n", stderr=""),
         "`pulumi import` failed: no json"),
        (SimpleNamespace(returncode=1, stderr="", stdout=json.dumps({"diagnostics": [
            {"severity": "error", "message": "one\n"}, {"severity": "info", "message": "x"},
            {"severity": "error", "message": "two"}]})), "one; two"),
    ],
)  # fmt: skip
def test_an_import_that_cannot_be_asked_for_is_told(answer: Any, text: str) -> None:
    with pytest.raises(CommandError) as failed:
        take_over(Engine([(STEPS, [DATA])], [answer], []))
    assert str(failed.value).startswith(text)


def test_a_lost_state_is_refused_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(settings="settings")
    monkeypatch.setattr(lost_state.stacks, "load", lambda *_: loaded)
    monkeypatch.setattr(StackRef, "connect_clients", lambda _: None)
    monkeypatch.setattr(lost_state, "_traces", lambda *_: iter(()))
    lost_state.refuse_if_lost(REF)
    monkeypatch.setattr(lost_state, "_traces", lambda *_: iter(("bucket gs://b", "account a")))
    with pytest.raises(CommandError) as refused:
        lost_state.refuse_if_lost(REF)
    assert str(refused.value) == (
        "the state of stack dev is empty, but the stack's bucket gs://b exists. Either the state "
        "was lost, or the backend or the `name` in Pulumi.yaml is wrong. Nothing was "
        "changed. Hint: run `vt import --state --stack dev` to list existing resources."
    )
    monkeypatch.setattr(lost_state.stacks, "load", lambda *_: (_ for _ in ()).throw(OSError()))
    lost_state.refuse_if_lost(REF)  # left to pulumi


class Cloud:
    """Whether the control bucket is there, and which accounts are."""

    def __init__(self, *there: str, bucket: bool = False, error: Exception | None = None) -> None:
        self.there, self.bucket, self.error = there, bucket, error
        self.asked: list[Any] = []

    def has_bucket(self, name: str, project: str) -> bool:
        self.asked.append((name, project))
        if self.error:
            raise self.error
        return self.bucket

    def call(self, method: str, url: str, name: str) -> Any:
        self.asked.append((url, name))
        return {"name": name} if name in self.there else None


ACCOUNT = "projects/acme-ml-dev/serviceAccounts/trainer-dev@acme-ml-dev.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("cloud", "traces"),
    [
        (Cloud(), []),
        (Cloud(bucket=True), ["bucket gs://acme-ml-dev-control-dev"]),
        (Cloud(ACCOUNT, error=CommandError("somebody else's")),
         ["account trainer-dev@acme-ml-dev.iam.gserviceaccount.com"]),
    ],
)  # fmt: skip
def test_traces_are_the_control_bucket_and_accounts_that_the_stack_makes(
    monkeypatch: pytest.MonkeyPatch, cloud: Cloud, traces: list[str]
) -> None:
    from vertex_training import naming

    names = naming.Names("acme-ml-dev", "7", "us-central1", "dev")
    accounts = {
        "given": SimpleNamespace(existing="x@y.iam.gserviceaccount.com"),
        "trainer": SimpleNamespace(existing=None),
    }
    settings: Any = SimpleNamespace(names=names, project_number="7", service_accounts=accounts)
    monkeypatch.setattr(lost_state, "Objects", lambda _: cloud)
    monkeypatch.setattr(lost_state.rest, "connect", lambda _: cloud)
    assert list(lost_state._traces(REF, settings)) == traces
    assert cloud.asked == [
        ("acme-ml-dev-control-dev", "7"), (f"https://iam.googleapis.com/v1/{ACCOUNT}", ACCOUNT),
    ]  # fmt: skip


ELSE = "resources that the stack's files do not declare were not searched for"


GRANTED = "`vt up` will create these resources; existing ones stay unchanged: 1 BucketIAMMember"


NEXT = "next: run `vt review --stack dev`, then `vt up --stack dev`"


def test_where_nothing_exists_nothing_is_imported_and_the_rest_is_named() -> None:
    engine = Engine([(STEPS, [COMPONENT, DATA])], [missing("data")], [])
    refused = {"severity": "error", "urn": f"{URN}busy", "message": "run 1 is FAILED"}
    output = json.dumps({"diagnostics": [refused]})
    engine.refused = SimpleNamespace(returncode=1, stdout=output, stderr="")
    assert take_over(engine) == (0, [
        "no resource was imported", (
            "missing in the cloud; `vt up` will create these resources: data"
        ), GRANTED,
        "`vt up` refuses: run 1 is FAILED", ELSE, NEXT,
    ])  # fmt: skip
