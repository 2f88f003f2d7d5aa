"""Three teams in one stack: who reaches which data, computed from every grant the program makes."""

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
    """(member, verb, resource) of everything that people of the stack reach."""
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


def test_each_team_reaches_its_own_data_and_what_is_shared_and_nothing_else() -> None:
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


def test_submitters_of_the_stack_act_as_no_account_of_a_team() -> None:
    assert not [each for each in access() if each[0] == "group:ml-engineers@example.com"]


CI = "serviceAccount:ci-deploy-dev@acme-ml-dev.iam.gserviceaccount.com"


def test_who_deploys_may_act_as_every_account_also_of_a_team_or_with_submitters_of_its_own() -> (
    None
):
    accounts = ACCOUNTS | {"shared-job": {}, "solo-job": {"team": "vision", "submitters": []}}
    resources = registered("dev", **(STACK | {"deployers": [CI], "serviceAccounts": accounts}))
    acting = {
        inputs["serviceAccountId"].rpartition("/")[2].partition("@")[0]
        for _, inputs in resources.values()
        if inputs.get("member") == CI and inputs["role"] == "roles/iam.serviceAccountUser"
    }
    assert acting == {f"{key}-dev" for key in accounts}


def test_who_deploys_is_a_submitter_of_nobody_else() -> None:
    """A person of a team gains nothing by the account that deploys."""
    assert access(deployers=[CI]) == access()


def test_a_member_of_both_lists_is_granted_once_and_keeps_its_grant_when_it_changes_lists() -> None:
    both = registered("dev", **(STACK | {"deployers": [CI], "submitters": [CI]}))
    assert registered("dev", **(STACK | {"deployers": [CI], "submitters": []})) == both


def test_a_team_without_submitters_has_none_and_not_those_of_the_stack() -> None:
    found = access(teams=TEAMS | {"speech": {}})
    assert "speech-data-dev" not in {target for _, _, target in found}


def test_submitters_of_an_account_replace_those_of_its_team() -> None:
    account = ACCOUNTS["vision-job"] | {"submitters": ["user:ada@example.com"]}
    found = access(serviceAccounts=ACCOUNTS | {"vision-job": account})
    assert {who for who, _, what in found if what == "vision-data-dev"} == {"user:ada@example.com"}


def test_access_goes_through_an_account_that_may_submit_as_another() -> None:
    """The account of one team as a submitter of another: its people reach both teams' data."""
    vision = "serviceAccount:vision-job-dev@acme-ml-dev.iam.gserviceaccount.com"
    found = access(teams=TEAMS | {"speech": {"submitters": [vision]}})
    assert ("group:vision@example.com", "reads", "speech-token-dev") in found


def test_whoever_may_act_as_every_account_of_the_project_reaches_what_they_reach() -> None:
    job = "serviceAccount:job@p-1.iam.gserviceaccount.com"
    bindings = [
        Binding("user:eve@example.com", "roles/iam.serviceAccountUser", "project", "p-1"),
        Binding(job, "roles/storage.objectViewer", "bucket", "data"),
    ]
    [through_account] = [a for a in reachable(bindings) if a.member == "user:eve@example.com"]
    address = "job@p-1.iam.gserviceaccount.com"
    expected = Access("user:eve@example.com", "reads", "bucket", "data", (address,))
    assert through_account == expected


def test_accounts_that_act_as_each_other_are_no_endless_way() -> None:
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


def test_what_a_team_owns_has_its_labels() -> None:
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
    """Problems of a job of team vision and one of team search, each for ten hours."""
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


def test_the_limits_of_a_team_hold_for_its_jobs_and_not_for_others(tmp_path) -> None:
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
    assert "teams.vision.limits.strategies allows SPOT" in strategy.hint
