"""Calls of the engine to the plugin, and its answers: stories in ``calls``, one file a subject."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from localgcp.gcp.codec import UNKNOWN, Asset, Secret, decode, plain
from localgcp.inventory.store import SERVICE, Binding, Store
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.gcp.harness import Plugin
from tests.unit.localcloud.stories import Step, Stories, strings_of, worded
from tests.unit.localcloud.vertex.rows import job_row

ANSWERS = ("id", "outputs", "imported", "refused", "failures", "changes", "replaces", "gone")
STORIES = Stories(Path(__file__).parent / "calls", ANSWERS)
#: Outputs that only the engine reads, or that every resource has.
COMMON = ("__meta", "id", "effectiveLabels", "pulumiLabels", "deletionPolicy")


class World:
    """A local cloud without a daemon, and a plugin for each project.

    In a step, ``$label`` is the id that the step with that ``label`` created.
    """

    def __init__(self, home: Path, plugin_for: Any, region: str, storage: str) -> None:
        self.home, self._start, self._region = home, plugin_for, region
        self._environment = {"VT_LOCAL_HOME": str(home), "STORAGE_EMULATOR_HOST": storage}
        self._plugins: dict[str, Plugin] = {}
        self._ids: dict[str, str] = {}
        self._created: dict[str, dict[str, Any]] = {}
        self.store = Store(home / "cloud.sqlite")
        self.jobs = JobTable(home / "cloud.sqlite")

    def answer(self, step: Step) -> Step:
        """The answer to one step, with labels for ids and words for what a service chooses."""
        step = strings_of(step, self._with_ids)
        if {"enable", "row", "policy", "job", "end"} & set(step):
            self._prepare(step)
            return {}
        project = step.get("project", "local-p1")
        if project not in self._plugins:
            self._plugins[project] = self._start(project, self._region, **self._environment)
        try:
            found = self._call(self._plugins[project], step)
        except grpc.RpcError as error:
            found = {"refused": error.details()}  # type: ignore[attr-defined]
        found = json.loads(json.dumps(found, default=repr))
        return worded(strings_of(found, self._with_labels))

    def _call(self, plugin: Plugin, step: Step) -> Step:
        inputs, id_ = _values(step.get("inputs", {})), step.get("of", "")
        olds = step.get("olds") or self._created.get(id_, {})
        if token := step.get("check"):
            checked = plugin.check(f"gcp:{token}", "res", inputs, olds)
            failures = sorted(each.reason for each in checked.failures)
            return {"failures": failures, "outputs": plain(decode(checked.inputs))}
        if token := step.get("create"):
            if not step.get("unchecked"):
                inputs = plugin.checked(f"gcp:{token}", step.get("name", "x"), inputs)
            id_, outputs = plugin.create_unchecked(f"gcp:{token}", inputs)
            self._created[id_] = outputs
            self._ids[step.get("label", "")] = id_
            return {"id": id_, "outputs": _decided(outputs, inputs)}
        if token := step.get("diff"):
            answer = plugin.diff(f"gcp:{token}", id_, inputs, olds)
            kinds = {path: int(each.kind) for path, each in sorted(answer.detailedDiff.items())}
            return {"changes": kinds, "replaces": list(answer.replaces)}
        if token := step.get("update"):
            self._created[id_] = outputs = plugin.update(f"gcp:{token}", id_, inputs, olds)
            return {"outputs": _decided(outputs, inputs)}
        if token := step.get("read"):
            known = olds if step.get("refresh") else {}
            read = plugin.read(f"gcp:{token}", id_, properties=known, inputs=inputs)
            found = {"id": read.id, "imported": plain(decode(read.inputs))}
            return found if read.id else {"gone": True}
        plugin.delete(f"gcp:{step['delete']}", id_, olds)
        return {}

    def _prepare(self, step: Step) -> None:
        """Change what other parts of the cloud and other clients write."""
        project = step.get("project", "local-p1")
        for service in step.get("enable", ()):
            self.store.put(SERVICE, f"{project}/{service}.googleapis.com", project, {}, {})
        if "row" in step:
            values = step.get("values", {})
            self.store.put(f"gcp:{step['row']}", step["of"], project, values, values)
        if "policy" in step:
            bindings = tuple(Binding(role, tuple(who)) for role, who in step["roles"].items())
            etag = self.store.policy(step["policy"]).etag
            self.store.set_policy(step["policy"], bindings, expected_etag=etag)
        if "job" in step:
            spec = {"network": step["network"]} if "network" in step else {}
            self.jobs.insert(job_row(step["job"], spec, state=JobState.RUNNING, project=project))
            for path, used in step.get("uses", {}).items():
                assert self.jobs.claim(step["job"], {path: used}, {path: 9})
        if "end" in step:
            self.jobs.move(step["end"], JobState.SUCCEEDED)

    def _with_ids(self, text: str) -> str:
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = text.replace("TOMORROW", tomorrow)
        return re.sub(r"\$([\w-]+)", lambda match: self._ids.get(match[1], match[0]), text)

    def _with_labels(self, text: str) -> str:
        for label, id_ in self._ids.items():
            text = text.replace(id_, f"${label}") if label else text
        return text.replace(str(self.home), "HOME")


def _values(inputs: Any) -> Any:
    """Inputs with the engine's special values: ``{"$file": path}``, ``{"$secret": …}``, UNKNOWN."""
    if inputs == "UNKNOWN":
        return UNKNOWN
    if isinstance(inputs, list):
        return [_values(each) for each in inputs]
    if not isinstance(inputs, dict):
        return inputs
    if "$file" in inputs:
        return Asset(inputs["$file"], (("path", inputs["$file"]),))
    if "$secret" in inputs:
        return Secret(_values(inputs["$secret"]))
    return {key: _values(each) for key, each in inputs.items()}


def _decided(outputs: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """Outputs that are neither empty nor inputs."""
    outputs, inputs = plain(outputs), plain(inputs)
    return {
        key: outputs[key]
        for key in sorted(outputs)
        if key not in COMMON and outputs[key] and outputs[key] != inputs.get(key)
    }


@pytest.mark.parametrize(("file", "story"), STORIES.parameters())
def test_the_plugin_answers_each_call_as_recorded(
    file: Path, story: str, tmp_path: Path, plugin_for: Any, request: pytest.FixtureRequest
) -> None:
    document = STORIES.documents[file]
    storage = request.getfixturevalue("emulator").url if document.get("storage") else "127.0.0.1:1"
    world = World(tmp_path, plugin_for, document.get("region", "us-central1"), storage)
    for step in document.get("setup", []):
        assert "refused" not in world.answer(step), step
    STORIES.check(file, story, world.answer)
