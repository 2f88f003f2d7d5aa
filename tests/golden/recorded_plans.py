"""Plans that the engine made of the changes of the large stack, as files beside this one.

``recorded/base.json`` has the plan of no change at all, and the file of a change what its plan has
else. ``record`` makes them anew, with a real engine and a local cloud, when RECORD=1 is set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from localgcp.inventory.store import Store
from tests.conftest import Checkout, running_checkout
from tests.golden.changes import CORPUS, LARGE_JOB, LARGE_STACK, RING, Change, edited
from vertex_training_cli.engine import plan_file
from vertex_training_cli.engine.plan import JOB
from vertex_training_cli.engine.plan_file import PlanFile

FOLDER: Final = Path(__file__).parent / "recorded"
#: Outputs that are other ones in every local cloud.
GIVEN_ANEW: Final = frozenset(
    {
        *("etag", "creationTimestamp", "timeCreated", "updated", "createTime", "updateTime"),
        *("effectiveTime", "uniqueId", "networkId", "numericId", "subnetworkId", "fingerprint"),
    }
)
PROGRAM: Final = Path("infra/vertex_training/components/storage.py")


def load(name: str) -> PlanFile:
    """The plan of a change."""
    base, own = (json.loads((FOLDER / f"{each}.json").read_text()) for each in ("base", name))
    steps = {step["urn"]: step for step in base["steps"]} | {s["urn"]: s for s in own["steps"]}
    whole = base | own | {"steps": [step for urn, step in steps.items() if urn not in own["gone"]]}
    whole.pop("gone")
    return plan_file.parse(json.dumps(whole).encode(), "local")


def job_ids() -> list[str]:
    """Resource names of the jobs that the large stack has before a change."""
    return [
        step.old.id for step in load("base").plan.steps if step.type == JOB and step.old is not None
    ]


def keep(name: str, plan: Mapping[str, Any]) -> None:
    """Write what a plan has else than the base, in an order and with ids that stay."""
    plan = _with_own_ids(plan)
    text = {key: value for key, value in plan.items() if key != "steps"}
    if name == "base":
        found = [*plan["steps"]]
        gone: list[str] = []
    else:
        base = json.loads((FOLDER / "base.json").read_text())
        text = {key: value for key, value in text.items() if value != base[key]}
        found = [step for step in plan["steps"] if step not in base["steps"]]
        gone = sorted({s["urn"] for s in base["steps"]} - {s["urn"] for s in plan["steps"]})
    FOLDER.mkdir(exist_ok=True)
    document = {**text, "gone": gone, "steps": found}
    (FOLDER / f"{name}.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def _with_own_ids(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan by URN, without times and tags of the service, with 1 and 2 for the ids of jobs."""
    steps = sorted(plan["steps"], key=lambda step: step["urn"])
    text = json.dumps(_without_times({**plan, "steps": steps}))
    jobs = [step["old"]["id"] for step in steps if step["type"] == JOB and step["old"]]
    for number, job in enumerate(jobs, start=1):
        text = text.replace(job.rpartition("/")[2], f"{number:019}")
    return json.loads(text)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in GIVEN_ANEW}
        return {key: _without_times(each) for key, each in kept.items()}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


@contextmanager
def deployed(folder: Path) -> Iterator[Checkout]:
    """The large stack as it is before each change, deployed in a local cloud."""
    with running_checkout(folder) as copy:
        write(copy, Change())
        store = Store(copy.home / "cloud.sqlite")
        for kind, id_ in (
            ("kms/keyRing:KeyRing", RING),
            ("kms/cryptoKey:CryptoKey", f"{RING}/cryptoKeys/first"),
            ("kms/cryptoKey:CryptoKey", f"{RING}/cryptoKeys/second"),
            ("storage/bucket:Bucket", CORPUS),
        ):
            store.put(f"gcp:{kind}", id_, "local-training", {"name": id_}, {"name": id_})
        copy.run("vt", "local", "up", "--no-wait")
        yield copy


def write(checkout: Checkout, change: Change) -> None:
    """Write the files as the change has them."""
    program = (Path(__file__).parents[2] / PROGRAM).read_text()
    for path, text, edits in (
        (Path("Pulumi.local.yaml"), LARGE_STACK, change.stack),
        (Path("jobs/train.yaml"), LARGE_JOB, change.job),
        (Path("jobs/check.yaml"), LARGE_JOB, change.job if change.all_jobs else ()),
        (PROGRAM, program, change.program),
    ):
        (checkout.path / path).write_text(edited(text, edits))


def record(checkout: Checkout, name: str, change: Change) -> None:
    """Let the engine plan the change, and keep its plan."""
    write(checkout, change)
    command = ("vt", "review", "--stack", "local", "--format", "plan", *change.flags)
    keep(name, json.loads(checkout.run(*command, expect=change.exit_code).stdout))
