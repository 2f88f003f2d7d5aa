"""The data script, the files it wrote, and what the job refuses to train on."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from titanic.data import load_split
from titanic.errors import JobError


@pytest.fixture(scope="module")
def built(data_script: ModuleType) -> dict[str, bytes]:
    return data_script.build()


@pytest.mark.parametrize("name", ["train.npz", "val.npz", "test.npz"])
def test_the_script_writes_the_committed_files_byte_for_byte(
    name: str, built: dict[str, bytes], titanic_data: Path
) -> None:
    assert built[name] == (titanic_data / name).read_bytes()


def test_every_passenger_is_in_exactly_one_split(data_script: ModuleType) -> None:
    rows = data_script.split_rows(data_script.read_source())
    assert {name: len(members) for name, members in rows.items()} == {
        "train": 915,
        "val": 197,
        "test": 197,
    }
    assert sorted(np.concatenate(list(rows.values()))) == list(range(1309))


def test_another_seed_deals_the_passengers_anew(data_script: ModuleType) -> None:
    table = data_script.read_source()
    first, second = data_script.split_rows(table, seed=0), data_script.split_rows(table, seed=1)
    assert set(first["test"]) != set(second["test"])
    assert len(first["test"]) == len(second["test"])


def test_survival_rates_of_the_splits_agree(titanic_data: Path) -> None:
    rates = [load_split(str(titanic_data / f"{n}.npz")).survived.mean() for n in ("train", "test")]
    assert rates[0] == pytest.approx(rates[1], abs=0.01)


def test_columns_are_raw_and_unknown_ages_are_kept(titanic_data: Path) -> None:
    split = load_split(str(titanic_data / "train.npz"))
    assert np.isnan(split.columns["age"]).sum() == 183
    assert set(split.columns["sex"]) == {"female", "male"}
    assert "Master" in split.columns["title"]
    assert split.columns["party_size"].min() == 1


def _arrays() -> dict[str, np.ndarray]:
    return {
        "passenger_class": np.array([1, 3], dtype=np.int8),
        "sex": np.array(["female", "male"]),
        "age": np.array([np.nan, 30.0], dtype=np.float32),
        "title": np.array(["Mrs", "Mr"]),
        "party_size": np.array([1, 2], dtype=np.int8),
        "survived": np.array([1, 0], dtype=np.int8),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": None, "title": None}, r"missing arrays: age, title \(found: "),
        ({"age": np.array([1.0])}, r"of one length, got .*age \(1,\)"),
        ({"survived": np.array([[1], [0]])}, "one-dimensional"),
        ({"survived": np.array([1, 2])}, r"survived must be 0 or 1, got \[1, 2\]"),
        ({"age": np.array([np.inf, 1.0])}, "age must be finite"),
        ({"age": np.array(["old", "young"])}, "age must be finite floats"),
        ({"sex": np.array(["female", None], dtype=object)}, "not an .npz file of plain arrays"),
        ({name: array[:0] for name, array in _arrays().items()}, "no passengers"),
    ],
)
def test_a_split_that_cannot_be_trained_on_is_refused_in_one_line(
    change: dict[str, np.ndarray | None], message: str, tmp_path: Path
) -> None:
    arrays = {k: v for k, v in (_arrays() | change).items() if v is not None}
    path = tmp_path / "split.npz"
    np.savez(path, allow_pickle=True, **arrays)
    with pytest.raises(JobError, match=message) as caught:
        load_split(str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"survived,age\n1,2\n", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "split.npz"
    path.write_bytes(content)
    with pytest.raises(JobError, match=r"not an \.npz file"):
        load_split(str(path))


def test_a_single_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "split.npy", np.zeros(3))
    with pytest.raises(JobError, match=r"not an \.npz file"):
        load_split(str(tmp_path / "split.npy"))
