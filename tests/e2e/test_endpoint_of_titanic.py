"""Tests `make local ENDPOINT=1`: the main job is trained, and served as in its stack file."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from tests.conftest import Checkout
from tests.fixture_project import sample

for _name in ("titanic", "data/titanic"):
    sample(_name)
# The first job on a new machine waits for PyTorch, several gigabytes.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

COMMAND = ("vt", "local", "up", "--endpoints", "jobs/titanic/serve/stack.yaml")
STACK = "local-endpoint"


@pytest.fixture(scope="module")
def served(checkout: Checkout) -> Checkout:
    assert " ".join(COMMAND) in checkout.shell("make -n local ENDPOINT=1").stdout
    told = " ".join(checkout.run(*COMMAND).stdout.split())
    assert "predictions 100, equal to the script's predictions" in told
    return checkout


def outputs(served: Checkout) -> dict[str, Any]:
    return json.loads(served.shell(f"pulumi stack output -s {STACK} --json").stdout)


def made(served: Checkout) -> tuple[int, list[str]]:
    """Return the number of jobs ever created, and names of versions and endpoint."""
    with sqlite3.connect(served.home / "cloud.sqlite") as database:
        [jobs] = database.execute("select count(*) from custom_jobs").fetchone()
    found = outputs(served)
    return jobs, [found["models"]["titanic"]["run 1"], found["endpoints"]["titanic"]["name"]]


def test_official_client_predicts_100_rows_like_the_script(served: Checkout) -> None:
    from vertex_training_cli.engine import stacks
    from vertex_training_cli.serving import service

    ref = stacks.find(STACK, served.path)
    ref.connect_clients()
    found = outputs(served)
    folder = found["jobs"]["titanic"]["artifacts"].removeprefix("gs://")
    text = (served.home / "storage" / folder / "model" / "predictions.jsonl").read_text()
    own = [json.loads(line) for line in text.splitlines()[:100]]
    answer = service.client(ref.project, ref.region, "prediction").predict(
        endpoint=found["endpoints"]["titanic"]["name"],
        instances=[each["instance"] for each in own],
    )
    expected = [each["prediction"] for each in own]
    assert list(answer.predictions) == pytest.approx(expected, abs=1e-6)
    assert len(set(expected)) > 10


def test_second_up_of_the_endpoint_changes_nothing(served: Checkout) -> None:
    before = made(served)
    told = served.run(*COMMAND).stdout
    assert not {"created", "updated", "replaced", "deleted"} & set(told.split())
    assert "unchanged" in told
    assert made(served) == before
    served.shell(f"pulumi preview -s {STACK} --expect-no-changes")
    served.shell(f"pulumi refresh -s {STACK} --preview-only --expect-no-changes")
