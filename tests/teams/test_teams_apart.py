"""Tests which team can access which data, computed from all grants of the program (three teams)."""

from __future__ import annotations

from tests.unit.infra.recorder import registered
from vertex_training.plan.access import Access, Binding, reachable
from vertex_training.stack import from_raw

TEAMS = {
    "vision": {"submitters": ["group:vision@example.com"], "labels": {"cost-center": "v1"}},
    "speech": {"submitters": ["group:speech@example.com"]},
    "search": {"submitters": ["group:search@example.com", "user:lead@example.com"]},
}
BUCKETS = {f"{team}-data": {"team": team} for team in TEAMS} | {"public-data": {}}
ACCOUNTS = {
    f"{team}-job": {"team": team, "writes": [f"{team}-data"], "reads": ["public-data"]}
    for team in TEAMS
} | {"speech-job": {"team": "speech", "reads": ["speech-data"], "secrets": ["speech-token"]}}
STACK = {
    "teams": TEAMS,
    "buckets": BUCKETS,
    "serviceAccounts": ACCOUNTS,
    "secrets": {"speech-token": {"team": "speech"}},
    "submitters": ["group:ml-engineers@example.com"],
    "packages": {},
    "images": {},
    "jobs": {},
}
KINDS = {"bucket": "bucket", "secretId": "secret", "serviceAccountId": "account"}


def access(**changes: object) -> set[tuple[str, str, str]]:
    """Return member, verb and resource for everything that people of the stack can access."""
    found = set()
    for type_, inputs in registered("dev", **(STACK | changes)).values():
        if type_.lower().endswith("iammember"):
            key = next((key for key in KINDS if key in inputs), "project")
            kind = KINDS.get(key, key)
            found.add(Binding(inputs["member"], inputs["role"], kind, inputs[key]))
    return {
        (each.member, each.verb, each.target.rpartition("/")[2].removeprefix("acme-ml-dev-"))
        for each in reachable(found)
        if not each.member.startswith("serviceAccount:")
    }


def test_each_team_reaches_only_its_own_and_shared_data() -> None:
    expected = {
        ("group:vision@example.com", "writes", "vision-data-dev"),
        ("group:vision@example.com", "reads", "public-data-dev"),
        ("group:speech@example.com", "reads", "speech-data-dev"),
        ("group:speech@example.com", "reads", "speech-token-dev"),
    }
    for member in TEAMS["search"]["submitters"]:
        expected |= {
            (member, "writes", "search-data-dev"),
            (member, "reads", "public-data-dev"),
        }
    assert access() == expected


def test_stack_submitters_cannot_act_as_team_accounts() -> None:
    assert not [each for each in access() if each[0] == "group:ml-engineers@example.com"]


CI = "serviceAccount:ci-deploy-dev@acme-ml-dev.iam.gserviceaccount.com"


def test_deployer_can_act_as_every_account() -> None:
    accounts = ACCOUNTS | {"shared-job": {}, "solo-job": {"team": "vision", "submitters": []}}
    resources = registered("dev", **(STACK | {"deployers": [CI], "serviceAccounts": accounts}))
    acting = {
        inputs["serviceAccountId"].rpartition("/")[2].partition("@")[0]
        for _, inputs in resources.values()
        if inputs.get("member") == CI and inputs["role"] == "roles/iam.serviceAccountUser"
    }
    assert acting == {f"{key}-dev" for key in accounts}


def test_deployer_account_gives_teams_no_additional_access() -> None:
    """A person of a team gains no access through the deploying account."""
    assert access(deployers=[CI]) == access()


def test_member_that_changes_lists_keeps_one_grant() -> None:
    both = registered("dev", **(STACK | {"deployers": [CI], "submitters": [CI]}))
    assert registered("dev", **(STACK | {"deployers": [CI], "submitters": []})) == both


def test_team_without_submitters_does_not_inherit_them() -> None:
    found = access(teams=TEAMS | {"speech": {}})
    assert "speech-data-dev" not in {target for _, _, target in found}


def test_submitters_of_an_account_replace_its_teams_submitters() -> None:
    account = ACCOUNTS["vision-job"] | {"submitters": ["user:ada@example.com"]}
    found = access(serviceAccounts=ACCOUNTS | {"vision-job": account})
    assert {who for who, _, what in found if what == "vision-data-dev"} == {"user:ada@example.com"}


def test_access_includes_accounts_reached_through_another_account() -> None:
    """The account of one team is a submitter of another team, so its people can access both teams'
    data.
    """
    vision = "serviceAccount:vision-job-dev@acme-ml-dev.iam.gserviceaccount.com"
    found = access(teams=TEAMS | {"speech": {"submitters": [vision]}})
    assert ("group:vision@example.com", "reads", "speech-token-dev") in found


def test_access_includes_a_project_wide_act_as_role() -> None:
    job = "serviceAccount:job@p-1.iam.gserviceaccount.com"
    bindings = [
        Binding("user:eve@example.com", "roles/iam.serviceAccountUser", "project", "p-1"),
        Binding(job, "roles/storage.objectViewer", "bucket", "data"),
    ]
    [through_account] = [a for a in reachable(bindings) if a.member == "user:eve@example.com"]
    address = "job@p-1.iam.gserviceaccount.com"
    expected = Access("user:eve@example.com", "reads", "bucket", "data", (address,))
    assert through_account == expected


def test_accounts_that_act_as_each_other_cause_no_endless_loop() -> None:
    one, other = (f"{name}@p-1.iam.gserviceaccount.com" for name in ("one", "other"))
    role = "roles/iam.serviceAccountUser"
    bindings = [
        Binding(f"serviceAccount:{one}", role, "account", f"projects/p-1/serviceAccounts/{other}"),
        Binding(f"serviceAccount:{other}", role, "account", f"projects/p-1/serviceAccounts/{one}"),
        Binding(f"serviceAccount:{one}", "roles/storage.objectUser", "bucket", "data"),
    ]
    assert {each.member for each in reachable(bindings)} == {
        f"serviceAccount:{one}",
        f"serviceAccount:{other}",
    }


def test_resources_of_a_team_have_its_labels() -> None:
    resources = registered("dev", **STACK)
    labels = resources["storage-vision-data"][1]["labels"]
    assert (labels["team"], labels["cost-center"]) == ("vision", "v1")
    assert resources["storage-public-data"][1]["labels"]["team"] == "ml-platform"
    assert resources["secrets-speech-token"][1]["labels"]["team"] == "speech"


JOB = """\
serviceAccount: ${{serviceAccounts.{account}}}
baseOutputDirectory: {{outputUriPrefix: "${{buckets.{bucket}}}/${{job.name}}/${{job.requestId}}"}}
scheduling: {{timeout: 36000s, strategy: {strategy}}}
workerPoolSpecs:
  - machineSpec: {{machineType: n1-standard-4}}
    replicaCount: 1
    containerSpec: {{imageUri: us-docker.pkg.dev/p/r/i@sha256:{zeros}, command: ["true"]}}
"""


def judged(tmp_path, teams, strategy="STANDARD"):
    """Return problems of a job of team vision and of one of team search, each for ten hours."""
    for team in ("vision", "search"):
        text = JOB.format(
            account=f"{team}-job", bucket=f"{team}-data", strategy=strategy, zeros="0" * 64
        )
        (tmp_path / f"{team}.yaml").write_text(text)
    jobs = {team: {"file": f"{team}.yaml"} for team in ("vision", "search")}
    raw = {
        "stack": "dev",
        "project": "acme-ml-dev",
        "region": "us-central1",
        "projectNumber": "210987654321",
    }
    found = from_raw(raw | STACK | {"teams": teams, "jobs": jobs}, tmp_path)
    results = found.check_jobs()
    return [
        *(problem for result in results.values() for problem in result.errors),
        *found.exceeded_limits(results),
    ]


def test_limits_of_a_team_apply_only_to_its_jobs(tmp_path) -> None:
    assert judged(tmp_path, TEAMS) == []
    limits = {"maxUsdPerJob": 1, "machineTypes": ["g2-*"], "strategies": ["SPOT"]}
    found = judged(tmp_path, TEAMS | {"vision": {"limits": limits}})
    assert {problem.location.file for problem in found} == {"vision.yaml"}
    assert {problem.rule for problem in found} == {
        "limit-job-cost",
        "limit-machine-type",
        "limit-strategy",
    }
    [strategy] = [problem for problem in found if problem.rule == "limit-strategy"]
    assert "teams.vision.limits.strategies does not allow" in strategy.what
