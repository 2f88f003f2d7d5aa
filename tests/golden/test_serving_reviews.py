"""Changes of models and endpoints, reviewed: what the program registers before and after.

No engine runs: a version would need a container that answers. What a preview adds is added here,
which is what the service says of the runs. UPDATE_GOLDEN=1 writes the reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.golden import registered
from tests.golden.changes import JOB, Change
from tests.golden.test_reviews import REPORTS, without_digests
from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import ENDPOINT, MODEL_VERSION
from vertex_training_cli.engine import events as engine_events
from vertex_training_cli.review import formats, report

HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest tests/golden/test_serving_reviews.py"
SERVE: Final = "us-central1-docker.pkg.dev/local-training/training-local/serve@sha256:"
STACK: Final = f"""\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:submitters: ["group:ml-engineers@example.com"]
  vertex-training:buckets: {{artifacts: {{}}}}
  vertex-training:serviceAccounts: {{trainer: {{writes: [artifacts]}}, server: {{}}}}
  vertex-training:jobs:
    train: {{file: jobs/train.yaml, run: 4}}
    check: {{file: jobs/check.yaml}}
  vertex-training:models:
    titanic: {{job: train, run: [3], container: "{SERVE}{"a" * 64}"}}
  vertex-training:endpoints:
    titanic:
      machine: n1-standard-2
      replicas: {{min: 1, max: 2}}
      account: server
      public: true
      split: {{run 3: 100}}
"""
MODELS: Final = STACK[STACK.index("  vertex-training:models") :]
RUNS: Final = ("run: [3], container", "run: [3, 4], container")
SPLIT: Final = "{run 3: 100}"
CURRENT: Final = (("run: [3]", "run: [4]"), (SPLIT, "{run 4: 100}"))
#: What runs measured, by their number.
METRICS: Final = {3: {"test_accuracy": 0.8101, "loss": 0.41}, 4: {"test_accuracy": 0.7912}}
#: Name -> before, after.
CHANGES: Final = {
    "endpoint-new": (Change(stack=((MODELS, ""), (", server: {}", ""))), Change()),
    "endpoint-canary": (Change(), Change(stack=(RUNS, (SPLIT, "{run 3: 90, run 4: 10}")))),
    "endpoint-rolled-back": (
        Change(stack=(RUNS, (SPLIT, "{run 3: 0, run 4: 100}"))),
        Change(stack=(RUNS, (SPLIT, "{run 3: 100, run 4: 0}"))),
    ),
    "endpoint-of-an-edited-job": (
        Change(stack=CURRENT),
        Change(stack=CURRENT, job=(("--epochs=10", "--epochs=20"),)),
    ),
    "endpoint-closed": (Change(), Change(stack=(("public: true", "public: false"),))),
    "endpoint-removed": (Change(), Change(stack=((MODELS, ""),))),
}


def is_made_anew(before: Any, after: Any) -> bool:
    """Whether another endpoint takes the place of the one there is: then its traffic goes too."""
    shells = [
        [new for type_, new in found.values() if type_ == ENDPOINT] for found in (before, after)
    ]
    return all(shells) and shells[0] != shells[1]


def events(before: Any, after: Any) -> Iterator[plans.Event]:
    """What the engine would say of two registrations."""
    for name, (type_, new) in after.items():
        old = before.get(name, (None, None))[1]
        op = "create" if old is None else "same" if old == new else "update"
        if op == "update" and is_made_anew(before, after):
            op = "replace"
        yield plans.step(op, type_, name, old, new)
    for name in before.keys() - after.keys():
        yield plans.delete(before[name][0], name, **before[name][1])


def with_runs(found: Any) -> dict[str, tuple[str, Any]]:
    """Registrations with what ``check`` adds to those of versions."""
    return {
        name: (type_, {**inputs, "resolved": {"metrics": METRICS[int(inputs["model"]["run"])]}})
        if type_ == MODEL_VERSION
        else (type_, inputs)
        for name, (type_, inputs) in found.items()
    }


def review(name: str, folder: Path) -> report.ReviewReport:
    both = list[dict[str, tuple[str, Any]]]()
    for place, change in zip(("before", "after"), CHANGES[name], strict=True):
        (folder / place).mkdir()
        found = registered.with_types(change, folder / place, STACK, JOB)
        both.append(with_runs(found))
    config = {"gcp:project": "local-training", "gcp:region": "us-central1"}
    plan = engine_events.parse(plans.lines(*events(*both), config=config), "local")
    return report.build(plan, source="state of local")


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_models_and_endpoints_is_reported_as_committed(
    name: str, tmp_path: Path
) -> None:
    told, file = (
        without_digests(formats.to_markdown(review(name, tmp_path))),
        REPORTS / f"{name}.md",
    )
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(told)
    assert told == file.read_text(), HINT


def test_the_months_are_those_of_a_calculation_by_hand(tmp_path: Path) -> None:
    """n1-standard-4 is 0.189999 USD an hour there: half of it, a fee of 15 %, 730 hours."""
    month = 0.189999 / 2 * 1.15 * 730
    [canary] = review("endpoint-canary", tmp_path).endpoints
    assert canary.cost_before is not None
    assert canary.cost is not None
    assert canary.cost_before.monthly == pytest.approx((month, 2 * month))
    assert canary.cost.monthly == pytest.approx((2 * month, 4 * month))  # two versions
    told = (REPORTS / "endpoint-canary.md").read_text()
    assert (
        f"${month:.2f} to ${2 * month:.2f} → ${2 * month:.2f} to ${4 * month:.2f} a month" in told
    )
