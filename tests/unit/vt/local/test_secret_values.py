"""``vt local secret set``: a value comes from stdin, and goes into one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.fixture_project import copy_project
from vertex_training_cli.cli import app

Run = Callable[..., Result]
ENDS = (
    "vt: the value ends with a newline, which is a part of the secret. To write a value without a "
    "newline, use `printf %s`\n"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``vt local secret set`` in a checkout whose stack has the secret ``wandb-api-key``."""
    (project := tmp_path / "project").mkdir()
    monkeypatch.chdir(copy_project(project))
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))

    def given(*arguments: str, value: bytes = b"abc") -> Result:
        return CliRunner().invoke(app, ["local", "secret", "set", *arguments], input=value)

    return given


def kept(tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "home/secrets/local-training/wandb-api-key-local"
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_value_is_kept_byte_for_byte_as_the_next_version(tmp_path: Path, run: Run) -> None:
    first = run("wandb-api-key", value=b"one")
    told = "vt: secret wandb-api-key has the new version 1\n"
    assert (first.exit_code, first.stdout, first.stderr) == (0, "", told)
    second = run("wandb-api-key", "--stack", "local", value=b"\0\xff\n")
    assert second.stderr == f"{ENDS}vt: secret wandb-api-key has the new version 2\n"
    assert kept(tmp_path) == {"1": b"one", "2": b"\0\xff\n"}


def test_a_renamed_secret_keeps_the_id_that_it_was_made_with(tmp_path: Path, run: Run) -> None:
    file = Path("Pulumi.local.yaml")
    renamed = file.read_text().replace("wandb-api-key: {", "wandb: {formerly: wandb-api-key, ")
    file.write_text(renamed.replace("[wandb-api-key]", "[wandb]"))
    assert run("wandb", value=b"one").stderr == "vt: secret wandb has the new version 1\n"
    assert kept(tmp_path) == {"1": b"one"}


@pytest.mark.parametrize(
    ("arguments", "value", "said"),
    [
        (
            ["wandb-key"], b"x",
            "stack local has no secret 'wandb-key'. Hint: did you mean 'wandb-api-key'?",
        ),
        (
            ["wandb-api-key"],
            b"",
            "the value of a secret must have 1 to 65,536 bytes; this value has 0.",
        ),
        (["wandb-api-key"], b"x" * 65_537, (
            "the value of a secret must have 1 to 65,536 bytes; this value has 65,537."
        )),
        (["wandb-api-key"], b"x" * 70_000, (
            "the value of a secret must have 1 to 65,536 bytes; this value has 65,537."
        )),
        (
            ["wandb-api-key", "--stack", "dev"], b"x",
            "project acme-ml-dev is not a project of the local cloud. Hint: gcloud "
            "secrets versions add wandb-api-key-dev --project=acme-ml-dev --data-file=-",
        ),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_secret_is_refused(
    tmp_path: Path, run: Run, arguments: list[str], value: bytes, said: str
) -> None:
    done = run(*arguments, value=value)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"vt local secret set: {said}\n"
    assert not (tmp_path / "home/secrets").exists()
