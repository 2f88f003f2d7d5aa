"""Tests the state of a job in the engine, and its dependencies there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import only_jobs
from tests.e2e.only_jobs import Project
from tests.e2e.small_stacks import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

JOB = "pulumi-python:dynamic/vertex:CustomJob"
#: What stands in for everything a stack puts around its jobs. It refuses to go while a job runs,
#: which it would meet if the two went at once: a job takes longer to end.
THINGS = PROGRAMS["state_of_jobs"]["THINGS"]
PLACES = PROGRAMS["state_of_jobs"]["PLACES"]
BUSY = {"script": "exec sleep 600"}
ENDS = {"wait": "succeeded", "deadline": "2m"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with only_jobs.project(tmp_path_factory.mktemp("state")) as made:
        (made.path / "things.py").write_text(THINGS)
        imports, _, rest = only_jobs.PROGRAM.partition("\njobs, requests")
        program = f"{imports}\n{PLACES}\njobs, requests{rest}"
        (made.path / "__main__.py").write_text(program.replace("after=[]", "after=[around]"))
        yield made


def around(project: Project, text: str, *things: str) -> None:
    """Declare resources beside the jobs; another ``text`` replaces them."""
    said = {key: {"text": text, "needed_by": ["busy"]} for key in things}
    (project.path / "things.json").write_text(json.dumps(said))


def resource(project: Project, name: str) -> dict[str, Any]:
    """Return one resource of the state by name."""
    [found] = [r for r in project.state()["resources"] if r["urn"].endswith(f"::{name}")]
    return found


def test_job_takes_two_kilobytes_of_state_with_its_source_location(project: Project) -> None:
    around(project, "a", "network", "account")
    project.want(busy=BUSY)
    project.up()
    job = resource(project, "training-busy")
    stack_trace = job.pop("stackTrace")
    assert len(json.dumps(job, separators=(",", ":"))) < 2000
    assert job["sourcePosition"].partition("#")[0] == "project:///" + _relative(project)
    assert stack_trace[0] == {"sourcePosition": job["sourcePosition"]}
    assert job["id"] not in json.dumps(job["outputs"])


def test_job_depends_on_its_parts_and_its_component_on_all_dependencies(project: Project) -> None:
    job, training = resource(project, "training-busy"), resource(project, "training")
    assert job["parent"] == training["urn"]  # by which the job waits for what its parent waits for
    assert job["dependencies"] == [resource(project, "place")["urn"]]
    assert set(training["dependencies"]) == {
        resource(project, name)["urn"] for name in ("network", "account")
    }


def test_replaced_dependency_does_not_restart_the_job(project: Project) -> None:
    around(project, "b", "network", "account")
    told = project.pulumi("preview -s local --diff")
    assert "2 to replace" in told
    assert JOB not in told


def test_targeted_job_is_not_submitted_without_its_dependencies(project: Project) -> None:
    project.want(busy={**BUSY, "run": 2})
    around(project, "a", "network", "account", "peering")
    urn = resource(project, "training-busy")["urn"]
    told = project.pulumi(f"up -s local --yes --skip-preview --target '{urn}'", code=None)
    assert "::peering' which was was not specified in --target list" in told
    assert [job.state.terminal for job in project.accepted("busy")] == [False]


def test_job_is_deleted_before_its_dependencies(project: Project) -> None:
    project.want()
    around(project, "b", "account")
    project.up()
    assert [job.state.terminal for job in project.accepted("busy")] == [True]


def test_tainted_succeeded_job_keeps_its_record_and_is_adopted(project: Project) -> None:
    """Without its record, the same request would be sent and billed again."""
    around(project, "b", "account")
    project.want(done={"script": "true", "onDelete": "delete", **ENDS})
    project.up()
    before = resource(project, "training-done")
    project.pulumi(f"state taint -s local --yes '{before['urn']}'")
    assert "1 replaced" in project.up()
    assert resource(project, "training-done")["id"] == before["id"]
    assert [job.state.name for job in project.accepted("done")] == ["SUCCEEDED"]


def _relative(project: Project) -> str:
    """Return the position of ``CustomJob``'s call in the SDK, relative to the project."""
    return os.path.relpath(
        only_jobs.ROOT / "infra/vertex_training/customjob/resource.py", project.path
    )
