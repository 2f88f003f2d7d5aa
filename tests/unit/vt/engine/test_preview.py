"""Where a preview runs, and what becomes of one that says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vertex_training.errors import PreviewError
from vertex_training_cli.engine.events import (
    compare_with_cloud,
    make_plan,
    stream_events,
)
from vertex_training_cli.engine.pulumi_cli import BACKEND, PulumiCli


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for stack, project in (("local", "local-training"), ("dev", "acme-ml-dev")):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(f"config: {{gcp:project: {project}}}\n")
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(BACKEND, raising=False)
    return tmp_path


#: Notes its arguments and what it is told; prints an event for each line of ``events``.
ENGINE = """#!/bin/sh
told="$PULUMI_ENABLE_STREAMING_JSON_PREVIEW $VT_REVIEWS_SNAPSHOTS$VT_COMPARES_WITH_CLOUD"
echo "$told $HERE $(pwd) $@" > asked
cat events
printf ' told \\377\\n' >&2
exit $(cat code)
"""


def engine(root: Path, *told: object, code: int = 0) -> PulumiCli:
    path = root / "bin"
    path.mkdir()
    (path / "pulumi").write_text(ENGINE)
    (path / "pulumi").chmod(0o755)
    lines = (json.dumps({"sequence": 1, **each}) if isinstance(each, dict) else each
             for each in told)  # fmt: skip
    (root / "events").write_bytes(b"".join(f"{line}\n".encode("latin-1") for line in lines))
    (root / "code").write_text(str(code))
    return PulumiCli(root, {"PATH": f"{path}:/bin", "HERE": "x"})


def test_drift_asks_the_engine_for_one_document_of_what_the_cloud_has(root: Path) -> None:
    """And tells it that nothing is submitted: a refused submission must not end it."""
    done = compare_with_cloud(engine(root, "{}", code=2), "dev")
    assert (done.returncode, done.stdout, done.stderr) == (2, "{}\n", " told \ufffd\n")
    assert (root / "asked").read_text() == (
        f" true x {root} preview --refresh --expect-no-changes --show-sames --json"
        " --stack dev --non-interactive\n"
    )


def test_without_an_engine_or_a_word_of_it_a_preview_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(root / "python"))
    with pytest.raises(PreviewError) as refused:
        stream_events(PulumiCli(root, {"PATH": "/nowhere"}), "dev")
    assert str(refused.value) == str(PreviewError("pulumi is not on PATH. Hint: run `vt setup`."))
    silent = engine(root)
    (root / "bin" / "pulumi").write_text("#!/bin/sh\nexit 9\n")
    with pytest.raises(PreviewError) as refused:
        stream_events(silent, "dev")
    assert str(refused.value) == str(PreviewError("`pulumi preview` ended with exit code 9"))


SUCCEEDED = {"summaryEvent": {"result": "succeeded"}}
ERROR = {"errorEvent": {"error": "no"}}
VIOLATION = {"policyEvent": {"policyName": "p"}}


@pytest.mark.parametrize(
    ("told", "code", "said", "succeeded"),
    [
        ((SUCCEEDED,), 0, [], True),
        ((SUCCEEDED,), 1, ["told \ufffd"], False),
        ((SUCCEEDED, ERROR), 1, ["no"], False),
        ((SUCCEEDED, VIOLATION), 1, [], True),
        ((), 1, ["told \ufffd"], False),
        (("Updating",), 0, ["line is not an engine event: Updating"], False),
    ],
)
def test_a_preview_that_fails_is_a_plan_with_its_reason(
    root: Path, told: tuple[object, ...], code: int, said: list[str], succeeded: bool
) -> None:
    found = make_plan(engine(root, *told, code=code), "dev")
    assert (found.stack, [each.message for each in found.errors]) == ("dev", said)
    assert found.succeeded is succeeded


def test_a_plan_has_the_config_of_the_engine_and_that_of_files_that_the_stacks_file_includes(
    root: Path,
) -> None:
    shown = {"preludeEvent": {"config": {"gcp:project": "shown", "x:y": "z"}}}
    (root / "teams.yaml").write_text(
        "config:\n  vertex-training:buckets: {b: {}, a: {token: hunter2hunter2}}\n"
    )
    file = root / "Pulumi.dev.yaml"
    file.write_text("config:\n  gcp:project: x\n  vertex-training:include: [teams.yaml]\n")
    pulumi = engine(root, shown, SUCCEEDED)
    assert make_plan(pulumi, "dev").config == {
        "gcp:project": "shown",
        "x:y": "z",
        "vertex-training:buckets": '{"a": {"token": "[secret]"}, "b": {}}',
        "vertex-training:include": '["teams.yaml"]',
    }
    file.unlink()
    assert make_plan(pulumi, "dev").config == {"gcp:project": "shown", "x:y": "z"}
