"""The workflows: each step is a make verb that is there, and no job has more rights than told.

actionlint and zizmor (`make check`) judge syntax and the known ways to lose a secret; here is
what is this project's own rule.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STEP = re.compile(r"(?:exec tools/foreground )?make ([a-z-]+)")

#: Where each verb of a workflow is run by a test; "cloud" where that takes GitHub or Google Cloud.
RUN_BY = {
    "setup": "everything: no test runs without it",
    "check": ".ci/run",
    "test": ".ci/run",
    "bench": ".ci/run",
    "lowest": "by hand, and for its Pythons in GitHub: `.ci/run` would take two minutes more",
    "report": "tests/e2e/test_gitops.py",
    "preview": "tests/e2e/test_gitops.py",
    "comment": "tests/e2e/test_gitops.py",
    "approval": "tests/e2e/test_gitops.py",
    "preflight": "tests/e2e/test_gitops.py",
    "deploy": "tests/e2e/test_gitops.py",
    "drift": "tests/e2e/test_gitops.py",
    "drift-issue": "tests/e2e/test_gitops.py",
    "deployed": "tests/security/test_slots_run_deployed_code.py",
    "advance": "tests/e2e/test_schedules.py",
    "images": "cloud",
    "images-request": "tests/unit/tools/test_images_request.py",
    "images-comment": "tests/unit/tools/test_images_comment.py",
    "release": "tests/unit/tools/test_release.py",
    "publish": "tests/unit/tools/test_release.py",
}
#: The rights of a job, beyond reading the code. Another one needs a reason here.
RIGHTS = {
    ("preview", "preview"): {"id-token": "write"},
    ("report", "comment"): {"actions": "read", "pull-requests": "write"},
    ("report", "images"): {"actions": "write", "pull-requests": "read"},
    ("deploy", "dev"): {"id-token": "write", "pull-requests": "read", "actions": "read"},
    ("deploy", "plan-prod"): {"id-token": "write"},
    ("deploy", "prod"): {"id-token": "write"},
    ("images", "build"): {"id-token": "write", "pull-requests": "write"},
    ("drift", "dev"): {"id-token": "write", "issues": "write"},
    ("drift", "prod"): {"id-token": "write", "issues": "write"},
    ("advance", "dev"): {"id-token": "write"},
    ("advance", "prod"): {"id-token": "write"},
    ("release", "release"): {"contents": "write", "id-token": "write", "attestations": "write"},
}


def workflow(file):
    content = yaml.safe_load(file.read_text())
    content["on"] = content.pop(True)  # what YAML 1.1 makes of the key `on`
    return content


def every_job():
    for file in WORKFLOWS:
        for key, job in workflow(file)["jobs"].items():
            yield pytest.param(file.stem, key, job, id=f"{file.stem}-{key}")


def every_step(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def verbs_of_the_makefile():
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_there_are_eight():
    names = ["advance", "check", "deploy", "drift", "images", "preview", "release", "report"]
    assert [file.stem for file in WORKFLOWS] == names


@pytest.mark.parametrize(("name", "key", "job"), [*every_job()])
def test_every_step_is_a_verb_that_the_makefile_has_and_a_test_runs(name, key, job):
    for run in every_step(job):
        found = STEP.fullmatch(run)
        assert found, f"{run!r} is no make verb"
        assert found[1] in verbs_of_the_makefile()
        assert found[1] in RUN_BY


def test_a_verb_said_to_be_run_by_a_test_is_named_there():
    for verb, place in RUN_BY.items():
        if (ROOT / place).is_file():
            assert re.search(rf"\b{verb}\b", (ROOT / place).read_text()), f"{place}: {verb}"
        else:
            assert "/" not in place or " " in place, f"{place} is not there"


@pytest.mark.parametrize(("name", "key", "job"), [*every_job()])
def test_a_job_has_the_rights_it_is_known_for_and_no_other(name, key, job):
    assert job["permissions"] == {"contents": "read", **RIGHTS.get((name, key), {})}
    assert workflow(ROOT / ".github" / "workflows" / f"{name}.yml")["permissions"] == {}


@pytest.mark.parametrize(("name", "key", "job"), [*every_job()])
def test_a_job_ends_by_itself_and_keeps_no_token_in_the_checkout(name, key, job):
    assert job["timeout-minutes"] <= 60
    checkouts = [
        step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert checkouts[0]["with"].keys() <= {"persist-credentials", "fetch-depth"}


def test_who_asks_for_images_neither_signs_in_nor_looks_at_the_branch():
    job = workflow(ROOT / ".github/workflows/report.yml")["jobs"]["images"]
    assert "environment" not in job
    checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
    assert [step["with"] for step in checkouts] == [{"persist-credentials": False}]
    for part in (
        "github.event.workflow_run.head_repository.full_name == github.repository",
        "github.event.workflow_run.actor.login != 'dependabot[bot]'",
        "github.event.workflow_run.triggering_actor.login != 'dependabot[bot]'",
    ):
        assert part in job["if"]


def test_a_branch_is_built_in_the_project_that_main_names_and_by_cloud_build():
    recipe = (ROOT / "Makefile").read_text().partition("\nimages:")[2].partition("\n\n")[0]
    assert "$(if $(SOURCE),--target-of $(CURDIR) --engine cloud-build)" in recipe


def test_images_are_built_by_the_code_of_main_from_a_branch_of_this_repository():
    """The branch lies beside the checkout, as data; a fork's has no name in it."""
    steps = workflow(ROOT / ".github/workflows/images.yml")["jobs"]["build"]["steps"]
    [at] = [i for i, step in enumerate(steps) if step.get("with", {}).get("path")]
    assert steps[at]["with"]["ref"] == "${{ inputs.commit }}"
    assert steps[at]["with"]["path"] == ".build/source"
    assert steps[at - 1]["run"] == "make setup"
    assert not [step for step in steps if "working-directory" in step]


def test_reviewers_of_images_see_a_commit_and_no_other_is_built(tmp_path):
    content = workflow(ROOT / ".github/workflows/images.yml")
    assert content["on"]["workflow_dispatch"]["inputs"]["commit"]["required"]
    assert "${{ inputs.commit }}" in content["run-name"]
    steps = content["jobs"]["build"]["steps"]
    [build] = [each for each in steps if each.get("run", "").endswith("make images")]
    assert build["env"]["COMMIT"] == "${{ inputs.commit }}"
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *command]
        subprocess.run(git, cwd=tmp_path, check=True)
    done = subprocess.run(
        ["make", "-o", "setup", "images", "STACK=dev", f"SOURCE={tmp_path}"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "COMMIT": "main"},
    )  # fmt: skip
    assert done.returncode != 0
    assert "is not at commit main" in done.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_digest_with_their_version_and_explained(file):
    decision = (ROOT / "docs" / "adr" / "0008-actions-by-digest.md").read_text()
    for line in re.findall(r"uses: (.*)", file.read_text()):
        found = re.fullmatch(r"([\w/-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line)
        assert found, line
        assert f"| {found[1]} | {found[3]} | `{found[2]}` |" in decision


def test_no_workflow_runs_a_strangers_code_with_our_rights():
    for file in WORKFLOWS:
        risky = {"pull_request_target", "workflow_run", "issue_comment"} & set(workflow(file)["on"])
        # tests/security/test_reports_of_pull_requests.py has what the one may do.
        assert risky == ({"workflow_run"} if file.stem == "report" else set())


def test_a_release_is_attested_before_it_is_published_and_only_then_has_a_token():
    content = workflow(ROOT / ".github/workflows/release.yml")
    assert content["on"] == {"push": {"tags": ["v*"]}}
    job = content["jobs"]["release"]
    assert job["environment"] == "release"
    *_, build, attest, publish = job["steps"]
    assert (build["run"], publish["run"]) == ("make release", "make publish")
    assert attest["with"] == {"subject-checksums": "dist/SHA256SUMS"}
    assert [step for step in job["steps"] if "GH_TOKEN" in step.get("env", {})] == [publish]
    assert "GH_TOKEN" not in job["env"]


def test_whoever_changes_or_reads_a_stack_for_long_does_so_alone_and_is_ended_by_no_other():
    jobs = {(p.values[0], p.values[1]): p.values[2] for p in every_job()}
    alone = {"cancel-in-progress": False, "queue": "max"}
    for stack in ("dev", "prod"):
        for name in ("deploy", "drift"):
            assert jobs[name, stack]["concurrency"] == {"group": f"stack-{stack}", **alone}


def test_a_deployment_hears_that_its_step_is_cancelled():
    for key in ("dev", "prod"):
        *_, last = every_step(workflow(ROOT / ".github/workflows/deploy.yml")["jobs"][key])
        assert last == "exec tools/foreground make deploy"
    recipe = subprocess.run(
        ["make", "-n", "deploy", "STACK=dev"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "exec .venv/bin/vt deploy" in recipe


def test_a_deployment_and_a_plan_of_prod_ask_first_what_would_be_refused():
    jobs = workflow(ROOT / ".github" / "workflows" / "deploy.yml")["jobs"]
    for key, then in (("dev", "deploy"), ("plan-prod", "preview"), ("prod", "deploy")):
        *_, asked, last = every_step(jobs[key])
        assert (asked, last.rpartition(" ")[2]) == ("make preflight", then)


def test_prod_is_planned_after_dev_and_deployed_in_an_environment_of_its_own():
    jobs = workflow(ROOT / ".github" / "workflows" / "deploy.yml")["jobs"]
    assert (jobs["plan-prod"]["needs"], jobs["prod"]["needs"]) == ("dev", "plan-prod")
    assert (jobs["dev"]["environment"], jobs["prod"]["environment"]) == ("dev", "prod")


VERBS_OF_A_STACK = (
    "up", "review", "report", "preview", "deploy", "drift", "drift-issue", "comment", "approval",
    "preflight", "deployed", "advance",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS_OF_A_STACK)
def test_a_verb_without_a_stack_says_so(verb):
    done = subprocess.run(
        ["make", "-n", verb], cwd=ROOT, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "STACK"},
    )  # fmt: skip
    assert done.returncode != 0
    assert f"STACK is not set. Hint: make {verb} STACK=dev" in done.stderr
