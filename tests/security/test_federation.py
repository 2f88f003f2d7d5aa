"""Tests which GitHub token can impersonate which account of CI, by the token's claims.

The provider's attribute mapping and condition are evaluated as the Security Token Service does: the
mapping first, then the condition over the assertion and the mapped attributes. An expression that
fails, such as one over a claim that is absent, refuses the token. Then the members of the accounts'
policies are compared with the attributes.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any, Final

import cel
import pytest
import yaml

from tests.unit.bootstrap.recorder import grants, registered

ROOT: Final = Path(__file__).resolve().parents[2]
IMPERSONATE: Final = "roles/iam.workloadIdentityUser"
#: https://docs.cloud.google.com/iam/docs/reference/rest/v1/projects.locations.workloadIdentityPools.providers
MAX_SUBJECT, MAX_MAPPING, MAX_CONDITION, MAX_ATTRIBUTES = 127, 2048, 4096, 8192
MEMBER: Final = re.compile(
    r"principal(?:Set)?://iam\.googleapis\.com/[^ ]*?/workloadIdentityPools/[a-z0-9-]+/"
    r"(subject|attribute\.\w+)/(.+)"
)
OLD, NEW = "repo:octo-org/octo-repo", "repo:octo-org@65/octo-repo@74"
MAIN: Final = "refs/heads/main"


@pytest.fixture(scope="module")
def environments() -> dict[str, dict[str, dict[str, Any]]]:
    return {stack: registered(stack) for stack in ("dev", "prod")}


def token(
    workflow: str, event: str, ref: str, context: str, **claims: str | None
) -> dict[str, str]:
    """Return the claims of a token; a claim of ``None`` is absent.

    https://docs.github.com/en/actions/reference/security/oidc
    """
    repository = claims.get("repository") or "octo-org/octo-repo"
    file = f"{repository}/.github/workflows/{workflow}.yml@{ref}"
    every = {
        "iss": "https://token.actions.githubusercontent.com",
        "sub": f"{OLD}:{context}",
        "repository": repository,
        "repository_id": "74",
        "repository_owner": "octo-org",
        "repository_owner_id": "65",
        "actor": "monalisa",
        "actor_id": "2",
        "event_name": event,
        "ref": ref,
        "base_ref": "",
        "head_ref": "",
        "workflow_ref": file,
        "job_workflow_ref": file,
        "run_id": "19574389012",
        "run_attempt": "1",
    }
    return {key: value for key, value in (every | claims).items() if value is not None}


def deployment(
    stack: str, *, ref: str = MAIN, event: str = "push", **claims: str
) -> dict[str, str]:
    context = f"environment:{stack}"
    return token("deploy", event, ref, context, **({"environment": stack} | claims))


def pull_request(**claims: str) -> dict[str, str]:
    given = {"base_ref": "main", "head_ref": "topic"} | claims
    return token("preview", "pull_request", "refs/pull/7/merge", "pull_request", **given)


def on_main(workflow: str, event: str, **claims: str) -> dict[str, str]:
    return token(workflow, event, MAIN, f"ref:{MAIN}", **claims)


def plan(
    stack: str, workflow: str, event: str, *, ref: str = MAIN, **claims: str
) -> dict[str, str]:
    context = f"environment:{stack}-plan"
    given = {"environment": f"{stack}-plan"} | claims
    return token(workflow, event, ref, context, **given)


BRANCH: Final = "refs/heads/topic"
ELSEWHERE: Final = "evil-org/flows/.github/workflows"
TABLES: Final[dict[str, dict[str, dict[str, Any]]]] = yaml.safe_load(
    Template(Path(__file__).with_name("tokens.yaml").read_text("utf-8")).substitute(
        OLD=OLD, NEW=NEW, LONG="r" * 120, NAME="r" * 100, COMMIT="a" * 40, EVIL=ELSEWHERE,
        FLOWS="octo-org/octo-repo/.github/workflows",
    )
)  # fmt: skip


def to_claims(row: dict[str, Any]) -> dict[str, str]:
    """Return the claims of a token of the table."""
    makers = {each.__name__: each for each in (token, deployment, pull_request, on_main, plan)}
    maker, *words = row["token"].split()
    more = {key: value for key, value in row.items() if key not in ("token", "dev", "prod")}
    return makers[maker](*words, **more)


TOKENS: Final = TABLES["accounts"]


def provider(resources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return resources["github-provider"]


def attributes(resources: dict[str, dict[str, Any]], claims: dict[str, str]) -> dict[str, str]:
    """Return the token's mapped attributes; nothing if the token is refused."""
    mapping: dict[str, str] = provider(resources)["attributeMapping"]
    try:
        mapped = {key: cel.evaluate(text, {"assertion": claims}) for key, text in mapping.items()}
        custom = {
            key.partition(".")[2]: value for key, value in mapped.items() if "attribute" in key
        }
        context = {"assertion": claims, "attribute": custom, "google": {}}
        allowed = cel.evaluate(provider(resources)["attributeCondition"], context)
    except (KeyError, RuntimeError, TypeError, ValueError):
        return {}
    assert all(isinstance(value, str) for value in mapped.values()), mapped
    return mapped if allowed is True and len(mapped["google.subject"]) <= MAX_SUBJECT else {}


def accounts(resources: dict[str, dict[str, Any]], claims: dict[str, str]) -> set[str]:
    """Return the accounts that a token may impersonate."""
    mapped = attributes(resources, claims)
    found: set[str] = set()
    for member, role, place, _ in grants(resources):
        if role == IMPERSONATE:
            parts = MEMBER.fullmatch(member)
            assert parts, f"{member} is no member of a pool that this test understands"
            attribute = "google.subject" if parts[1] == "subject" else parts[1]
            if mapped.get(attribute) == parts[2]:
                found.add(place.split("@")[0].split("-")[1])
    return found


@pytest.mark.parametrize("stack", ["dev", "prod"])
@pytest.mark.parametrize("name", TOKENS)
def test_token_can_impersonate_only_the_expected_accounts(
    name: str, stack: str, environments: dict[str, dict[str, dict[str, Any]]]
) -> None:
    row = TOKENS[name]
    assert accounts(environments[stack], to_claims(row)) == (
        {row[stack]} if stack in row else set()
    )


IMAGES: Final = {"environment": "dev-images"}
#: Tokens that are almost those of a build.
NO_BUILDS: Final = TABLES["not built"]


def test_images_are_built_only_in_dev(environments: dict[str, dict[str, dict[str, Any]]]) -> None:
    claims = on_main("images", "workflow_dispatch", **IMAGES)
    assert attributes(environments["dev"], claims)["attribute.ci_role"] == "build"
    assert not accounts(environments["dev"], claims)
    prod = claims | {"environment": "prod-images"}
    assert not attributes(environments["prod"], claims)
    assert not attributes(environments["prod"], prod)


@pytest.mark.parametrize("name", NO_BUILDS)
def test_only_the_image_workflow_token_can_build_images(
    name: str, environments: dict[str, dict[str, dict[str, Any]]]
) -> None:
    assert (
        attributes(environments["dev"], to_claims(NO_BUILDS[name])).get("attribute.ci_role")
        != "build"
    )


def test_attribute_mapping_is_within_the_limits(
    environments: dict[str, dict[str, dict[str, Any]]],
) -> None:
    for resources in environments.values():
        assert len(provider(resources)["attributeCondition"]) <= MAX_CONDITION
        assert all(
            len(text) <= MAX_MAPPING for text in provider(resources)["attributeMapping"].values()
        )
        for row in TOKENS.values():
            mapped = attributes(resources, to_claims(row))
            assert sum(len(key) + len(value) for key, value in mapped.items()) <= MAX_ATTRIBUTES


def test_no_grant_uses_a_repository_name_that_others_can_register(
    environments: dict[str, dict[str, dict[str, Any]]],
) -> None:
    for resources in environments.values():
        texts = [provider(resources)["attributeCondition"]]
        texts += provider(resources)["attributeMapping"].values()
        texts += [member for member, role, _, _ in grants(resources) if role == IMPERSONATE]
        for text in texts:
            assert "octo" not in text
            assert "assertion.sub" not in text
            assert "/subject/" not in text


def signing_jobs() -> list[tuple[str, str, dict[str, Any], list[str]]]:
    """Yield workflow, event, job and variables of its accounts, for each job that signs in."""
    found: list[tuple[str, str, dict[str, Any], list[str]]] = []
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        content = yaml.safe_load(file.read_text())
        for job in content["jobs"].values():
            # What an approval binds names an account without becoming it.
            env = {k: v for k, v in job.get("env", {}).items() if k != "VT_DEPLOY_ACCOUNT"}
            text = str(job | {"env": env})
            if named := re.findall(r"GCP_(\w+)_SERVICE_ACCOUNT_(\w+)", text):
                pairs = sorted({f"{role} {stack}".lower() for role, stack in named})
                found += [(file.stem, event, job, pairs) for event in content[True]]
    return found


def test_signing_jobs_can_impersonate_their_account(
    environments: dict[str, dict[str, dict[str, Any]]],
) -> None:
    seen: set[str] = set()
    for workflow, event, job, pairs in signing_jobs():
        claims = on_main(workflow, event)
        if event == "pull_request":
            claims = pull_request()
        for pair in pairs:
            role, stack = pair.split()
            if "environment" in job:
                claims |= {"environment": job["environment"]}
            assert accounts(environments[stack], claims) == {role}, (workflow, event, pair)
            seen.add(pair)
    assert seen == {"preview dev", "plan dev", "plan prod", "deploy dev", "deploy prod"}


def advance(stack: str, *, event: str = "schedule", ref: str = MAIN, **claims: str) -> set[str]:
    """Return the ``ci_role`` of a token of ``advance.yml`` where schedules are allowed."""
    given = token("advance", event, ref, f"environment:{stack}-advance",
                  **({"environment": f"{stack}-advance"} | claims))  # fmt: skip
    mapped = attributes(registered(stack, schedules=True), given)
    return {mapped["attribute.ci_role"]} if mapped else set()


def test_schedule_timer_signs_in_without_an_account_and_only_if_allowed() -> None:
    for stack in ("dev", "prod"):
        assert advance(stack) == advance(stack, event="workflow_dispatch") == {"advance"}
        for wrong in (
            {"event": "push"},
            {"event": "pull_request"},
            {"ref": BRANCH},
            {"environment": stack},
            {"environment": f"{stack}-plan"},
            {"repository_id": "75"},
            {"actor_id": "49699333"},
            {"job_workflow_ref": f"{ELSEWHERE}/advance.yml@{MAIN}"},
        ):
            assert advance(stack, **wrong) == set()
        found = registered(stack, schedules=True)
        claims = token("advance", "schedule", MAIN, "x", environment=f"{stack}-advance")
        assert accounts(found, claims) == set()
        assert accounts(registered(stack), claims) == set()
        mapping = provider(found)["attributeMapping"]
        assert sum(len(key) + len(text) for key, text in mapping.items()) <= MAX_ATTRIBUTES
        assert max(map(len, mapping.values())) <= MAX_MAPPING


def test_schedule_timer_can_only_read_state_submit_jobs_and_write_records() -> None:
    found = registered("dev", schedules=True)
    bare = registered("dev")
    new = {name: found[name] for name in found.keys() - bare.keys()}
    assert new.keys() == {
        "advance", "advance-state", "advance-role", "advance-jobs", "advance-records",
    }  # fmt: skip
    permissions = new["advance-role"]["permissions"]
    assert "aiplatform.customJobs.create" in permissions
    others = [each for each in permissions if not each.startswith("aiplatform.")]
    assert others == ["monitoring.timeSeries.list"]  # of jobs with idleStop, which it cancels
    assert not [each for each in permissions if each.endswith((".delete", ".setIamPolicy"))]
    assert new["advance-state"]["role"] == "roles/storage.objectViewer"
    [place] = re.findall(
        r"/buckets/([a-z0-9-]+)/", new["advance-records"]["condition"]["expression"]
    )
    assert "control" in place
    members = {each["member"] for each in new.values() if "member" in each}
    assert len(members) == 1
    assert members.pop().endswith("/attribute.ci_role/advance")
