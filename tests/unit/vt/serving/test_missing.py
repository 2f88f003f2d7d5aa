"""What an endpoint lacks of what the stack file declares, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.serving import endpoints

PLACE = "projects/p/locations/r/endpoints"


def declared(split: dict[int, int], **deployments: str) -> Any:
    runs = {int(run[1:]): SimpleNamespace(id=id_) for run, id_ in deployments.items()}
    return SimpleNamespace(key="titanic", id="7", deployments=runs, split=split)


def there(*ids: str, split: dict[str, int], id_: str = "7") -> dict[str, Any]:
    models = [SimpleNamespace(id=each) for each in ids]
    found = SimpleNamespace(name=f"{PLACE}/{id_}", deployed_models=models, traffic_split=split)
    return {"titanic": found}


TWO = declared({3: 90, 4: 10}, r3="30", r4="40")


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        ({}, ["is not there yet"]),
        (there("30", "40", split={"30": 90, "40": 10}, id_="8"), ["is not there yet"]),
        (there(split={}), ["does not have run 3 yet", "does not have run 4 yet"]),
        (there("40", split={"40": 100}), ["does not have run 3 yet"]),
        (there("30", "40", split={"30": 90, "40": 10}), []),
        # what somebody deployed by hand is no reason to wait, unless it takes a share
        (there("30", "40", "50", split={"30": 90, "40": 10, "50": 0}), []),
        (there("30", "40", "50", split={"30": 90, "50": 10}),
         ["has the split run 3: 90, model 50: 10"]),
        (there("30", "40", split={}), ["has the split no traffic"]),
    ],
)  # fmt: skip
def test_what_an_endpoint_lacks(found: dict[str, Any], missing: list[str]) -> None:
    assert endpoints._missing(TWO, found) == missing


def test_a_version_without_a_share_is_no_part_of_the_split() -> None:
    idle = declared({3: 100, 4: 0}, r3="30", r4="40")
    assert endpoints._missing(idle, there("30", "40", split={"30": 100, "40": 0})) == []


@pytest.mark.parametrize(
    ("split", "text"),
    [({}, "no traffic"), ({"run 3": 90, "run 4": 10}, "run 3: 90, run 4: 10")],
)
def test_a_split_as_people_read_it(split: dict[str, int], text: str) -> None:
    assert endpoints.split_text(split) == text
