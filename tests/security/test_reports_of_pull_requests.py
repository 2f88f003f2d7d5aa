"""Tests that hostile uploads of a pull request's run never become markup, code or approval.

Each file is told on a pull request by the real command, with a stand-in for GitHub's ``gh``.
"""

from __future__ import annotations

import io
import json
import re
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.unit.vt.github.conftest import (
    HEAD,
    MERGE,
    GitHub,
    approval_of,
    archive_of,
    hub,
    plan_text,
)
from vertex_training.errors import Location, Mend, Problem
from vertex_training_cli.engine import plan_file
from vertex_training_cli.github import gh, preview_run, repository
from vertex_training_cli.github.preview_run import PreviewComment, PreviewRun

__all__ = ["hub"]

WORKFLOWS: Final = Path(__file__).resolve().parents[2] / ".github" / "workflows"
MARK: Final = "cana" + "ry"
EVIL: Final = (
    f"`</code>|</td><img src=x onerror={MARK}>[{MARK}](https://m.example) @{MARK} "
    f"#{MARK} ![{MARK}](x)\n\n# {MARK}\n<!-- vt:approval {{}} --> ~~~ ``` \u202e{MARK}\u200b"
)
JOB: Final = "pulumi-python:dynamic/vertex:CustomJob"
TUNING: Final = "pulumi-python:dynamic/vertex:HyperparameterTuningJob"
MEMBER: Final = "gcp:storage/bucketIAMMember:BucketIAMMember"


def document(**changed: Any) -> dict[str, Any]:
    return json.loads(plan_text()) | changed


def text(**changed: Any) -> str:
    return json.dumps(document(**changed))


def step(type_: str, name: str, op: str = "create", **inputs: Any) -> dict[str, Any]:
    state = {"inputs": inputs, "outputs": {}, "protect": False, "id": ""}
    urn = f"urn:pulumi:dev::vertex-training::{type_}::{name}"
    old = state if op != "create" else None
    return {
        "op": op, "urn": urn, "type": type_, "old": old, "new": state, "keys": [], "paths": [],
    }  # fmt: skip


def steps(*found: dict[str, Any]) -> str:
    return text(steps=list(found))


def changed_step(**changed: Any) -> str:
    return steps(step("gcp:storage/bucket:Bucket", "a") | changed)


def nested(depth: int) -> str:
    return plan_text().replace('"config": {', f'"x": {"[" * depth}{"]" * depth}, "config": {{', 1)


#: No plan: each is refused, and the comment says so without a word of it.
REFUSED: Final[dict[str, str | bytes]] = {
    "nothing": "",
    "no JSON": EVIL,
    "null": "null",
    "a list": "[]",
    "a number": "1",
    "no UTF-8": b"\xff\xfe\x00",
    "half of a surrogate pair": plan_text().replace("data", "\\ud800"),
    "a key with half of a pair": plan_text().replace('"config": {', '"config": {"\\udfff": "",', 1),
    "a key twice": plan_text().replace('"version"', '"stack": "prod", "version"', 1),
    "NaN": plan_text().replace('"version": 1', '"version": NaN'),
    "Infinity": plan_text().replace('"version": 1', '"version": -Infinity'),
    "a float that overflows": plan_text().replace('"version": 1', '"version": 1e999'),
    "an integer of 5,000 digits": plan_text().replace('"version": 1', '"version": ' + "9" * 5000),
    "nested 100 deep": nested(100),
    "nested 200,000 deep": nested(200_000),
    "larger than a plan may be": plan_text() + " " * plan_file.MAX_BYTES,
    "an unknown key": text(approve=True),
    "another version": text(version=2),
    "a version of another type": text(version="1"),
    "another stack": plan_text().replace('"stack": "dev"', '"stack": "prod"'),
    "a stack with markup": text(stack=EVIL),
    "a resource of another stack": changed_step(urn="urn:pulumi:prod::p::a:b:C::x", type="a:b:C"),
    "a type that is not the resource's": changed_step(type=JOB),
    "an urn that is none": changed_step(urn=EVIL),
    "one resource twice": steps(*[step("a:b:C", "x")] * 2),
    "an operation with markup": changed_step(op=EVIL),
    "an operation of another type": changed_step(op=["create"]),
    "a state that is a list": changed_step(new=[]),
    "a protection that is a text": changed_step(
        new={"inputs": {}, "outputs": {}, "protect": "no", "id": ""}
    ),
    "inputs that are a text": changed_step(
        new={"inputs": "x", "outputs": {}, "protect": True, "id": ""}
    ),
    "a source with markup": text(source=f"Previewed against the state in gs://x {EVIL}"),
    "a source with a mention": text(source=f"Previewed against the state in gs://@{MARK}"),
    "a severity with markup": text(
        diagnostics=[{"severity": EVIL, "message": "", "urn": ""}]
    ),
    "a level with markup": text(violations=[{
        "policy": "p", "pack": "p", "level": EVIL, "message": "", "urn": "", "severity": ""
    }]),
    "a pack with markup": text(packs={EVIL: "1"}),
    "20,001 resources": steps(*[step("a:b:C", str(n)) for n in range(20_001)]),
    "a job whose request is a list of texts": steps(
        step(JOB, "j", request=json.dumps({"jobSpec": {"workerPoolSpecs": ["x"]}}))
    ),
    "a tuning job with trials that are no number": steps(
        step(TUNING, "j", request=json.dumps({"trialJobSpec": {}, "maxTrialCount": []}))
    ),
    "a tuning job whose spec is a text": steps(
        step(TUNING, "j", request=json.dumps({"trialJobSpec": EVIL, "maxTrialCount": 1}))
    ),
    "a submission that is a list": steps(step(JOB, "j", submission=[1], request="{}")),
    "a job on a number of machines without end": steps(step(JOB, "j", request=json.dumps(
        {"jobSpec": {"workerPoolSpecs": [{"replicaCount": [], "machineSpec": EVIL}]}}
    ))),
}  # fmt: skip


RUN: Final = PreviewRun("acme/training", 1, HEAD, "topic", "acme/training", "main", ("ann",))


def comment_on(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[str, PreviewComment]:
    """Return the posted comment for a run that uploaded ``archive``, without network."""
    monkeypatch.setattr(gh, "artifact_of", lambda *_: archive)
    made = preview_run.make_comment(RUN, {"number": 7}, "dev", {})
    return repository.body("report", "dev", made.text), made


@pytest.mark.parametrize("name", REFUSED)
def test_file_other_than_a_plan_is_refused_unread(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"dev.plan": REFUSED[name], "dev.approval.json": approval_of(plan_text())}
    body, made = comment_on(archive_of(files), monkeypatch)
    assert made.is_refused
    assert made.approval is None
    assert MARK not in body + made.reason
    assert "This preview has no report" in body
    assert len(body) < 500


def test_refused_file_revokes_an_earlier_approval(hub: GitHub) -> None:
    hub.told(approval=True)
    assert "dev has no report" in hub.told(plan=EVIL, approval=approval_of(PLAN), expect=1)
    assert hub.kept()["approval"] is None


#: Plans that a preview could have: told, with every text in it as code.
TOLD: Final = {
    "names": steps(step("gcp:storage/bucket:Bucket", EVIL.replace("\n", " "))),
    "values": steps(step("gcp:storage/bucket:Bucket", "a", "update", labels={EVIL: EVIL})),
    "a right": steps(step(MEMBER, "a", bucket=EVIL, role=EVIL, member=EVIL)),
    "a right on an unheard of kind": steps(step(MEMBER, "a", **{EVIL: EVIL, "member": EVIL})),
    "a condition": steps(step(MEMBER, "a", bucket="b", condition={"expression": EVIL})),
    "a job": steps(step(JOB, "j", submission={"job": EVIL, "region": EVIL}, request=json.dumps({
        "jobSpec": {"serviceAccount": EVIL, "network": EVIL, "scheduling": {"strategy": EVIL},
                    "workerPoolSpecs": [{"machineSpec": {"machineType": EVIL},
                                         "containerSpec": {"imageUri": EVIL}}]},
    }))),
    "the state of a job": steps(step(JOB, "j", "replace", submission={"job": "j"}, request="{}")
        | {"old": {"inputs": {}, "outputs": {"state": f"JOB_STATE_{EVIL}"}, "protect": False,
                   "id": ""}}),
    "a firewall": steps(step("gcp:compute/firewall:Firewall", "a", network=EVIL,
                             allows=[{"protocol": EVIL, "ports": [EVIL]}])),
    "messages": text(diagnostics=[{"severity": level, "message": EVIL, "urn": EVIL}
                                  for level in ("info", "warning")]),
    "an error": text(succeeded=False,
                     diagnostics=[{"severity": "error", "message": EVIL, "urn": ""}]),
    "a mistake": text(succeeded=False, problems=[{
        "what": EVIL, "value": EVIL, "hint": EVIL, "path": [EVIL], "rule": EVIL, "level": "error",
        "location": {"file": EVIL, "line": 1, "column": 1}}]),
    "a violation": text(violations=[{"policy": EVIL, "pack": EVIL, "level": "mandatory",
                                     "message": EVIL, "urn": EVIL, "severity": ""}]),
    "config": text(config={"gcp:project": EVIL, "gcp:region": EVIL}),
    "paths": changed_step(op="update", old={"inputs": {}, "outputs": {}, "protect": False,
                                            "id": ""}, paths=[EVIL]),
    "a destroyed resource": changed_step(op="delete", urn=(
        f"urn:pulumi:dev::p::a:b:C::{EVIL}".replace("\n", " ").replace("\u202e", "")),
        type="a:b:C"),
}  # fmt: skip


def outside_of_code(body: str) -> str:
    """Return the parts of a comment that GitHub would not render as code."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    found, in_code = "", 0
    for block in parser.parse(body):
        for token in [block] if block.children is None else block.children:
            if token.type == "html_inline" and token.content in ("<code>", "</code>"):
                in_code += 1 if token.content == "<code>" else -1
            elif token.type == "html_block":  # as it stands: no text in it becomes markup
                found += re.sub(r"<code>[^<]*</code>", "", token.content)
            elif token.type not in ("code_inline", "fence", "code_block") and not in_code:
                found += token.content + str(token.attrs or "")
    return found


@pytest.mark.parametrize("name", TOLD)
def test_text_of_a_plan_is_rendered_as_code_not_markup(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, made = comment_on(archive_of({"dev.plan": TOLD[name]}), monkeypatch)
    assert not made.is_refused, made.reason
    assert MARK not in outside_of_code(body)
    assert "<img" not in outside_of_code(body)
    assert "\u202e" not in body
    assert "\u200b" not in body
    assert body.splitlines()[1].startswith("## Review")
    assert made.approval is None


def test_markup_outside_of_code_is_detected() -> None:
    for part in (f"@{MARK}", f"[x](https://{MARK})", f"| a |\n|---|\n| {MARK} |", f"<b {MARK}>"):
        assert MARK in outside_of_code(part)


DAMAGED: Final = "the run's approval record is damaged"
NOT_OURS: Final = "the pull request is from a fork or Dependabot"
AGAINST: Final = "the review does not allow the deployment of this plan"
OFFLINE: Final = "Previewed offline against an empty state: everything looks new"
#: What an approval is refused for: the reason in the log and in the comment, and what is uploaded.
FORGED: Final[dict[str, tuple[str, Any, dict[str, Any]]]] = {
    "digest of another plan": (
        "the record's digest differs from the digest of the plan in the report",
        {"report": "0" * 64}, {},
    ),
    "content of another commit": (
        "the record's content differs from the commit", {"tree": "0" * 40}, {},
    ),
    "another commit": (
        "the record's commit differs from GitHub's current merge commit", {"commit": "0" * 40}, {},
    ),
    "the pull request's own commit": (
        "the record's commit differs from GitHub's current merge commit", {"commit": HEAD}, {},
    ),
    "another stack": ("the run's approval record is for another stack", {"stack": "prod"}, {}),
    "no JSON": (DAMAGED, EVIL, {}),
    "nested": (DAMAGED, "[" * 100_000, {}),
    "another key": (DAMAGED, approval_of(plan_text()).replace("{", '{"sudo": 1,', 1), {}),
    "a target with a secret": (
        "the record's target may contain a secret",
        {"target": {"backend": "gs://x", "settings": {"gcp:x": f"hf_{MARK * 6}"}}}, {},
    ),
    "a fork": (NOT_OURS, True, {"head_repository": {"full_name": "mallory/training"}}),
    "Dependabot": (NOT_OURS, True, {"actor": {"login": "dependabot[bot]"}}),
    "Dependabot's change, run anew": (
        NOT_OURS, True, {"triggering_actor": {"login": "dependabot[bot]"}},
    ),
    "an offline report": (
        "the preview was offline and started from an empty state", True,
        {"plan": plan_text(source=OFFLINE)},
    ),
    "a preview that failed": (AGAINST, True, {"plan": text(succeeded=False)}),
    "a plan that a policy forbids": (AGAINST, True, {"plan": TOLD["a violation"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_approval_of_another_merge_result_is_void(hub: GitHub, name: str) -> None:
    if name == "a fork":
        hub.open_pull(8, repository="mallory/training")
    reason, record, more = FORGED[name]
    approval = approval_of(plan_text(), **record) if isinstance(record, dict) else record
    said = hub.told(approval=approval, **more)
    [body] = hub.comments()
    assert said.splitlines()[1:] == [f"vt github: a merge does not approve this plan: {reason}"]
    assert f"\nA merge does not approve this plan: {reason}.\n" in body
    assert hub.kept()["approval"] is None
    assert MARK not in said


def test_unmodified_report_is_approved(hub: GitHub) -> None:
    hub.told(approval=True)
    assert hub.kept()["approval"]["commit"] == MERGE


def test_plan_with_a_hidden_step_has_another_digest_than_the_deployment(hub: GitHub) -> None:
    whole = steps(step(MEMBER, "a", bucket="b", member="allUsers", role="r"), step("a:b:C", "x"))
    hidden = steps(step("a:b:C", "x"))
    said = hub.told(plan=hidden, approval=approval_of(whole))
    assert "the record's digest differs from the digest of the plan in the report" in said


def test_merge_of_another_commit_with_the_same_name_is_not_approved(hub: GitHub) -> None:
    state = hub.state
    state["commits"][0]["parents"] = [{"sha": "b"}, {"sha": "0" * 40}]
    hub.file.write_text(json.dumps(state))
    assert "the record's content differs from the commit" in hub.told(approval=True)


@pytest.mark.parametrize("claim", ["number", "pull_request", "head_sha", "repository"])
def test_file_of_another_pull_request_is_refused(hub: GitHub, claim: str) -> None:
    hub.open_pull(8, sha="9" * 40)
    hub.told(plan=text(**{claim: 8}), expect=1)
    assert [each["issue"] for each in hub.state["comments"]] == [7]


@pytest.mark.parametrize(
    "event",
    [
        {"event": "push"},
        {"event": "workflow_dispatch"},
        {"path": ".github/workflows/mine.yml"},
        {"path": ".github/workflows/preview.yml.mine.yml"},
    ],
)
def test_run_of_another_workflow_or_event_is_not_reported(
    hub: GitHub, event: dict[str, str]
) -> None:
    assert "is not a run of .github/workflows/preview" in hub.told(approval=True, expect=1, **event)
    assert hub.comments() == []


def test_pull_request_of_another_repository_with_the_same_branch_is_not_reported(
    hub: GitHub,
) -> None:
    said = hub.told(approval=True, head_repository={"full_name": "acme/fork"})
    assert "no longer has an open pull request" in said
    assert hub.comments() == []


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    found.external_attr = mode << 16
    found.compress_type = zipfile.ZIP_DEFLATED
    return found


def archive(*entries: tuple[zipfile.ZipInfo, str | bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        for each, data in entries:
            opened.writestr(each, data)
    return content.getvalue()


def bomb(size: int) -> bytes:
    """Return a file of zeros whose header declares a small size."""
    made = bytearray(archive((entry("dev.plan"), b"\0" * size)))
    for place in (made.find(b"PK\x03\x04") + 22, made.find(b"PK\x01\x02") + 24):
        made[place : place + 4] = struct.pack("<I", 100)
    return bytes(made)


PLAN: Final = plan_text()
ARCHIVES: Final = {
    "not an archive": b"PK\x03\x04" + b"\0" * 100,
    "empty": b"",
    "cut": archive_of({"dev.plan": PLAN})[:-30],
    "damaged": (lambda made: made[:60] + b"\0" * 40 + made[100:])(archive_of({"dev.plan": PLAN})),
    "without a plan": archive_of({"dev.md": "x"}),
    "out of its folder": archive_of({"../dev.plan": PLAN, "../../.bashrc": "evil"}),
    "absolute": archive_of({"/dev.plan": PLAN, "/etc/cron.d/x": "evil"}),
    "with backslashes": archive_of({"..\\dev.plan": PLAN}),
    "in a folder": archive_of({"dev.plan/": "", "x/dev.plan": PLAN}),
    "a symbolic link": archive((entry("dev.plan", stat.S_IFLNK | 0o777), "/etc/passwd")),
    "a device": archive((entry("dev.plan", stat.S_IFCHR | 0o666), PLAN)),
    "a folder of that name": archive((entry("dev.plan", stat.S_IFDIR | 0o755), "")),
    "twice": archive((entry("dev.plan"), PLAN), (entry("dev.plan"), PLAN)),
    "with too many files": archive_of({f"{n}": "" for n in range(gh.MAX_FILES + 1)}),
    "a bomb": archive((entry("dev.plan"), b" " * (gh.MAX_FILE + 1))),
    "a bomb with a false size": bomb(gh.MAX_FILE + 1),
    "of another stack": archive_of({"prod.plan": PLAN, "DEV.PLAN": PLAN}),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_unexpected_archive_is_refused_and_writes_no_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    body, made = comment_on(ARCHIVES[name], monkeypatch)
    assert made.is_refused
    assert "This preview has no report" in body
    assert sorted(tmp_path.rglob("*")) == [folder.parent, folder]


def test_large_archive_is_read_only_up_to_a_limit(
    hub: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gh, "MAX_ARCHIVE", 1000)
    hub.uploaded(archive_of({"dev.plan": PLAN}) + b"\0" * 2000)
    hub.tell(expect=1)
    assert "more than 1000 bytes" in hub.comments()[0]


def test_hostile_record_beside_the_plan_is_refused(hub: GitHub) -> None:
    link = (entry("dev.approval.json", stat.S_IFLNK | 0o777), approval_of(PLAN))
    hub.uploaded(archive((entry("dev.plan"), PLAN), link))
    hub.tell(expect=1)
    assert "vt:approval" not in hub.comments()[0]


def workflow() -> dict[str, Any]:
    return yaml.safe_load((WORKFLOWS / "report.yml").read_text())


@pytest.mark.parametrize(
    ("name", "rights"),
    [
        ("comment", {"contents": "read", "actions": "read", "pull-requests": "write"}),
        ("images", {"contents": "read", "actions": "write", "pull-requests": "read"}),
    ],
)
def test_privileged_jobs_run_no_code_of_a_pull_request(name: str, rights: dict[str, str]) -> None:
    content = workflow()
    assert content[True] == {"workflow_run": {"workflows": ["preview"], "types": ["completed"]}}
    assert set(content["jobs"]) == {"comment", "images"}
    job = content["jobs"][name]
    assert job["permissions"] == rights
    [checkout] = [each for each in job["steps"] if "checkout@" in each.get("uses", "")]
    assert checkout["with"] == {"persist-credentials": False}  # no ref: the default branch
    assert not re.search(r"download-artifact|head_ref|id-token", str(job))
    assert "${{" not in "".join(each.get("run", "") for each in job["steps"])
    # The commit is a value to compare, of one step; nothing checks it out.
    named = [each for each in job["steps"] if "head_sha" in str(each)]
    assert [each["run"] for each in named] == (["make images-request"] if name == "images" else [])


def test_jobs_with_code_of_a_pull_request_have_no_write_permission() -> None:
    content = yaml.safe_load((WORKFLOWS / "preview.yml").read_text())
    for job in content["jobs"].values():
        rights = {right for right, level in job["permissions"].items() if level == "write"}
        assert rights <= {"id-token"}


def test_report_file_keeps_mistakes_without_their_fixes() -> None:
    mend = Mend("value", "hunter2")
    mistake = Problem("wrong", "x", "write y", ("jobs", 0), Location("a.yaml", 3, 4), mend=mend)
    parsed = plan_file.parse(PLAN.encode(), "dev")
    text = plan_file.write(parsed.plan, parsed.source, (mistake,))
    assert "hunter2" not in text
    assert plan_file.parse(text.encode(), "dev").problems == (mistake,)


def test_report_file_keeps_the_digest() -> None:
    from vertex_training_cli.review.report import plan_digest

    parsed = plan_file.parse(PLAN.encode(), "dev")
    again = plan_file.write(parsed.plan, parsed.source)
    assert plan_digest(plan_file.parse(again.encode(), "dev").plan) == plan_digest(parsed.plan)
    assert MERGE in approval_of(PLAN)
