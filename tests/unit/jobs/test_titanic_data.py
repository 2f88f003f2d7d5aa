"""The data script, the files it wrote, and what the job refuses to train on."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from titanic.data import load_split
from titanic.errors import JobError
from titanic.features import fit


@pytest.fixture(scope="module")
def built(data_script: ModuleType) -> dict[str, bytes]:
    return data_script.build()


@pytest.mark.parametrize("name", ["train.npz", "val.npz", "test.npz"])
def test_the_script_writes_the_committed_files_byte_for_byte(
    name: str, built: dict[str, bytes], titanic_data: Path
) -> None:
    assert built[name] == (titanic_data / name).read_bytes()


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
        ({"survived": np.array([1, 2])}, r"survived must be 0 or 1, got \[1, 2\]"),
        ({"age": np.array([np.inf, 1.0])}, "age must be finite"),
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


def test_training_data_without_one_known_age_is_refused() -> None:
    columns = {name: array for name, array in _arrays().items() if name != "survived"}
    with pytest.raises(JobError, match="no known age"):
        fit(columns | {"age": np.full(2, np.nan)})
