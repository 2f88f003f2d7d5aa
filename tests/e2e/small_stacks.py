"""Stacks of a few resources in projects of their own, written into a copy of the checkout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localgcp.home import Home
from localgcp.inventory.machines import RESERVATION
from localgcp.inventory.store import Store, project_number
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.conftest import Checkout

#: Programs by the module that runs them, and by name.
PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text("utf-8"))
REGION = "us-central1"
MACHINE = {"machineType": "n1-standard-4"}
#: Of a project that is not local, so its command runs on this machine, without a container engine.
IMAGE = f"us-docker.pkg.dev/acme-images/training/shell@sha256:{'0' * 64}"


def job_file(**spec: Any) -> dict[str, Any]:
    """Return a job file for ten minutes on one small machine."""
    container = {"imageUri": "${images.busy}", "command": ["sleep", "600"]}
    pool = {"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": container}
    return {
        "displayName": "busy",
        "jobSpec": {
            "serviceAccount": "${serviceAccounts.trainer}",
            "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
            "scheduling": {"timeout": "900s"},
            "workerPoolSpecs": [pool],
            **spec,
        },
    }


@dataclass(frozen=True)
class SmallStack:
    """One stack in a project of its own, in a checkout that other stacks may share."""

    checkout: Checkout
    name: str
    shared: str = ""
    """Id of a project that has other stacks, too."""

    @property
    def project(self) -> str:
        """The project's id: its own, unless it is shared."""
        return self.shared or f"local-{self.name}"

    @property
    def number(self) -> str:
        """The project's number."""
        return project_number(self.project)

    def write(self, jobs: dict[str, dict[str, Any]], /, **sections: Any) -> None:
        """Write the stack file and a file for each job."""
        config: dict[str, Any] = {
            "gcp:project": self.project,
            "gcp:region": REGION,
            "vertex-training:projectNumber": self.number,
            "vertex-training:buckets": {"artifacts": {"forceDestroy": True}},
            "vertex-training:serviceAccounts": {"trainer": {"writes": ["artifacts"]}},
            "vertex-training:images": {"busy": {"uri": IMAGE}},
            "vertex-training:jobs": {key: {"file": f"jobs/{self.name}-{key}.yaml"} for key in jobs},
        }
        config |= {f"vertex-training:{key}": value for key, value in sections.items()}
        for key, content in jobs.items():
            self._dump(f"jobs/{self.name}-{key}.yaml", content)
        self._dump(f"Pulumi.{self.name}.yaml", {"config": config})

    def _dump(self, name: str, content: Any) -> None:
        text = yaml.safe_dump(content, sort_keys=False)
        (self.checkout.path / name).write_text(text, encoding="utf-8")

    def pulumi(self, command: str, expect: int | None = 0) -> str:
        """Run `pulumi COMMAND` on this stack and return its output."""
        verb, _, rest = command.partition(" ")
        done = self.checkout.shell(f"pulumi {verb} -s {self.name} {rest}", expect=expect)
        return done.stdout + done.stderr

    def vt(self, *words: str, expect: int | None = 0) -> str:
        """Run `vt WORDS` on this stack and return its output."""
        done = self.checkout.run("vt", *words, "--stack", self.name, expect=expect)
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def outputs(self) -> dict[str, Any]:
        """Return the outputs of the stack."""
        return json.loads(self.checkout.shell(f"pulumi stack output -s {self.name} --json").stdout)

    def resources(self) -> list[dict[str, Any]]:
        """Return the resources in the state."""
        exported = self.checkout.shell(f"pulumi stack export -s {self.name}").stdout
        return json.loads(exported)["deployment"].get("resources") or []

    def up(self) -> None:
        """Deploy the stack; its job begins to run, and `up` does not wait for the job's end."""
        self.pulumi("up -y --skip-preview")

    def is_settled(self) -> None:
        """Check that neither program nor cloud has further changes."""
        self.pulumi("preview --expect-no-changes")
        self.pulumi("refresh --preview-only --expect-no-changes")

    def lose_state(self) -> None:
        """Delete the state, and create an empty one."""
        self.pulumi("stack rm --force --yes --preserve-config")
        self.checkout.shell(f"pulumi stack init {self.name}")

    def in_state(self) -> dict[str, str]:
        """Return ids of the resources in the state, by URN."""
        return {
            each["urn"]: each["id"]
            for each in self.resources()
            if each["custom"] and not each["type"].startswith("pulumi:")
        }

    def comes_back(self) -> str:
        """Delete, import and deploy the state; check that no resource is duplicated or missing.

        Returns what the import printed.
        """
        state, left, jobs = self.in_state(), self.left(), self.jobs()
        self.lose_state()
        vt = self.checkout.run
        told = vt("vt", "import", "--state", "--stack", self.name, "--write").stderr
        vt("vt", "up", "--stack", self.name, "--yes", "--skip-preview")
        assert self.left() == left
        assert [job.name for job in self.jobs()] == [job.name for job in jobs]
        assert self.in_state() == state
        self.is_settled()
        assert "not imported" not in told
        return told

    def plan(self) -> list[tuple[str, str]]:
        """Return the changing steps of a preview: (operation, name of the resource)."""
        preview = self.checkout.preview(self.name)
        return [
            (step["op"], step["urn"].rpartition("::")[2])
            for step in preview["steps"]
            if step["op"] != "same"
        ]

    @property
    def home(self) -> Home:
        """The home folder of the local cloud."""
        return Home(self.checkout.home, self.checkout.path)

    @property
    def store(self) -> Store:
        """The local cloud's resources."""
        return Store(self.home.database)

    def left(self) -> dict[str, str]:
        """Return the existing resources of this project: id -> type."""
        return self.checkout.left(self.project)

    def jobs(self) -> list[JobRecord]:
        """Return all jobs ever accepted in this project, oldest first."""
        return list(reversed(JobTable(self.home.database).list(self.number)))

    def states(self) -> list[JobState]:
        """Return the states of these jobs."""
        return [job.state for job in self.jobs()]

    def used(self, reservation: str) -> int:
        """Return the number of a reservation's machines that jobs use."""
        assert self.store.get(RESERVATION, reservation)
        return JobTable(self.home.database).used(reservation)
