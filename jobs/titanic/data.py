"""Reader of one split of the passengers from an ``.npz`` file, with validation.

Layout (written by ``jobs/data/titanic.py``): one array a column, all of one length.

==================  =========  =====================================================
``passenger_class``  int8      1, 2 or 3
``sex``              text      ``female`` or ``male``
``age``              float32   years; NaN where it is not known
``title``            text      the title in the passenger's name, such as ``Mrs``
``party_size``       int8      passengers of that surname and class, oneself included
``survived``         int8      the label: 1 or 0
``feature_names``    text      names of the columns that are features
==================  =========  =====================================================

Columns are raw: nothing in them is imputed, scaled or encoded (see ``titanic.features``).
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from titanic.errors import JobError
from titanic.storage import read_bytes

FEATURES = ("passenger_class", "sex", "age", "title", "party_size")
LABEL = "survived"


@dataclass(frozen=True)
class Split:
    """Passengers of one split: raw columns by name, and labels (survival)."""

    columns: dict[str, NDArray]
    survived: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.survived)


def load_split(uri: str) -> Split:
    """Read and check the split at `uri` (``gs://`` URI or path).

    Raises:
        JobError: it cannot be read, is no ``.npz`` file, lacks a column, or its columns do not
            fit each other.
    """
    arrays = _read_arrays(uri)
    missing = [name for name in (*FEATURES, LABEL) if name not in arrays]
    if missing:
        names = ", ".join(sorted(arrays)) or "none"
        raise JobError(f"{uri}: missing arrays: {', '.join(missing)} (found: {names})")
    columns = {name: arrays[name] for name in FEATURES}
    label = arrays[LABEL]
    _check(uri, columns, label)
    return Split(columns, label.astype(np.float32))


def _read_arrays(uri: str) -> dict[str, NDArray]:
    content = io.BytesIO(read_bytes(uri))
    try:
        # Never pickles: data must not be able to run code.
        archive = np.load(content, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise JobError(f"{uri}: not an .npz file but a single array, which has no name")
        return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise JobError(f"{uri}: not an .npz file of plain arrays ({error})") from error


def _check(uri: str, columns: dict[str, NDArray], label: NDArray) -> None:
    shapes = {name: column.shape for name, column in (*columns.items(), (LABEL, label))}
    if len(set(shapes.values())) > 1 or label.ndim != 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise JobError(f"{uri}: all arrays must be one-dimensional and of one length, got {listed}")
    if len(label) == 0:
        raise JobError(f"{uri}: no passengers in this split")
    if not np.isin(label, (0, 1)).all():
        raise JobError(f"{uri}: {LABEL} must be 0 or 1, got {np.unique(label).tolist()[:5]}")
    age = columns["age"]
    if not np.issubdtype(age.dtype, np.floating) or np.isinf(age).any():
        raise JobError(f"{uri}: age must be finite floats, NaN where not known (is {age.dtype})")
