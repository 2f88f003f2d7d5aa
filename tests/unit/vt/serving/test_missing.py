"""What an endpoint lacks of what the stack file declares, in words, and who waits for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CommandError
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
        (there("30", "40", "50", split={"30": 90, "50": 10}),
         ["has the split run 3: 90, model 50: 10"]),
    ],
)  # fmt: skip
def test_what_an_endpoint_lacks(found: dict[str, Any], missing: list[str]) -> None:
    assert endpoints._missing(TWO, found) == missing


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the endpoints of the stack are, look after look; a look takes a second."""
    looks: list[dict[str, Any]] = []
    known = {"titanic": TWO, "other": TWO}
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda pause: setattr(clock, "now", clock.now + pause)
    monkeypatch.setattr(endpoints, "time", clock)
    monkeypatch.setattr(endpoints, "_declared", lambda ref: known if ref.stack == "dev" else {})
    service = SimpleNamespace(
        connected=lambda stack: SimpleNamespace(stack=stack),
        Endpoints=lambda _: SimpleNamespace(list=lambda: looks.pop(0)),
    )
    monkeypatch.setattr(endpoints, "service", service)
    return looks


ALL = there("30", "40", split={"30": 90, "40": 10})


def test_a_wait_tells_what_is_missing_once_and_ends_when_nothing_is(
    seen: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    seen += [{}, {}, there("30", split={"30": 100}), there("30", split={"30": 100}), ALL]
    endpoints.wait(["titanic"], "dev", "5m")
    assert (seen, capsys.readouterr().err) == (
        [],
        "vt: endpoint titanic is not there yet\nvt: endpoint titanic does not have run 4 yet\n",
    )


@pytest.mark.parametrize(("stack", "hint"), [("dev", "there are titanic, other."), ("empty", "")])
def test_an_endpoint_that_is_not_declared_is_not_waited_for(
    seen: list[dict[str, Any]], stack: str, hint: str
) -> None:
    with pytest.raises(CommandError) as refused:
        endpoints.wait(["titanik"], stack, "1s")
    assert (refused.value.message, refused.value.hint) == (
        f"stack {stack} declares no endpoint 'titanik'.", hint,
    )  # fmt: skip
