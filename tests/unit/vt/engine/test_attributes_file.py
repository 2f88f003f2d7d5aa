"""The attributes file beside a state file."""

from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine import locks

WHOLE = '{"user.content_type": "application/json", "md5": "x"}\n'


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    folder = tmp_path / "a backend" / ".pulumi" / "stacks" / "train"
    folder.mkdir(parents=True)
    (folder / "dev.json").write_text("{}")
    return folder


def remove_truncated(stacks: Path, said: list[str] | None = None) -> list[Path]:
    backend = f"file://{str(stacks.parents[2]).replace(' ', '%20')}"
    return locks.remove_truncated(
        backend, "train", "dev", (said if said is not None else []).append
    )


@pytest.mark.parametrize("text", ["", WHOLE[:20], "\n", "null", "\ufffd"])
@pytest.mark.parametrize("name", ["dev.json.attrs", "dev.json.gz.attrs", "dev.json.zst.attrs"])
def test_one_that_is_cut_off_is_removed_and_told(stacks: Path, name: str, text: str) -> None:
    file, said = stacks / name, list[str]()
    file.write_text(text)
    assert remove_truncated(stacks, said) == [file]
    assert not file.exists()
    assert (stacks / "dev.json").exists()
    assert said == [
        (f"removed {name}, which a killed run left truncated; the state file itself is complete")
    ]


@pytest.mark.parametrize("backend", ["gs://state/x", "https://api.pulumi.com", ""])
def test_other_backends_have_none(backend: str) -> None:
    assert locks.remove_truncated(backend, "train", "dev", lambda _: None) == []


@pytest.mark.parametrize("before", [None, "{", "{}"])
def test_a_state_that_is_cut_off_is_refused_with_its_file_and_the_way_back(
    stacks: Path, before: str | None
) -> None:
    state, copy = stacks / "dev.json", stacks / "dev.json.bak"
    state.write_text('{"version": 3, "checkp')
    if before is not None:
        copy.write_text(before)
    with pytest.raises(CommandError, match="the state of stack dev is truncated") as refused:
        remove_truncated(stacks)
    way = f"run `cp {copy} {state}`, then `vt up --stack dev --refresh`."
    assert refused.value.hint == (
        way if before == "{}" else "read docs/operations.md#the-state-is-lost"
    )
    assert str(state) in str(refused.value)
