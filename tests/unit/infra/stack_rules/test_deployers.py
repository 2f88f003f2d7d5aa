"""What CI's account may not deploy is told before it fails half-way."""

from tests.unit.infra.stacks import rows, stack
from vertex_training.naming import local_project_number
from vertex_training.settings.model import Job
from vertex_training.stack_rules import deployers

GROUP = ["group:analysts@example.com"]


CI = "serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com"


def told(**changes):
    found = deployers.warnings(stack(**changes))
    assert all(
        each.level == "warning" and "with the right deploys it" in each.hint for each in found
    )
    return [".".join(map(str, each.path)) for each in found]


def test_jobs_of_a_stack_that_names_nobody_who_deploys_are_told_with_the_accounts():
    accounts = {"serviceAccounts": {"trainer": {}, "vision-job": {}}}
    job = {"titanic": Job(file="jobs/titanic.yaml")}
    [found] = deployers.warnings(stack(**accounts).model_copy(update={"jobs": job}))
    assert (found.path, found.level) == (("deployers",), "warning")
    assert "trainer, vision-job" in found.what
    assert "[serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com]" in found.hint
    named = stack(**accounts, deployers=[CI]).model_copy(update={"jobs": job})
    assert deployers.warnings(named) == []
    assert told(**accounts) == []  # nothing is submitted


def test_a_name_that_no_condition_of_ci_fits_is_told():
    assert told(
        buckets={
            "a": {"name": "acme-datasets"},
            "b": {"name": "acme-ml-prod-other-prod"},
            "c": {"existing": "acme-corpus"},
            "d": {"existing": "acme-corpus-2", "project": "acme-data-1"},
            "e": {},
        },
        secrets={
            "f": {"name": "wandb"},
            "g": {"existing": "projects/acme-ml-prod/secrets/x"},
            "h": {"existing": "projects/acme-keys-1/secrets/x"},
            "i": {},
        },
    ) == ["buckets.a.name", "buckets.c.existing", "secrets.f.name", "secrets.g.existing"]


def test_a_dataset_of_the_project_is_told_with_what_bootstrap_must_say():
    datasets = {
        "acme-ml-prod.clicks": ["roles/bigquery.dataViewer"],
        "acme-warehouse.clicks": ["roles/bigquery.dataViewer"],
    }
    [found] = deployers.warnings(stack(serviceAccounts={"trainer": {"datasets": datasets}}))
    assert found.path == ("serviceAccounts", "trainer", "datasets", "acme-ml-prod.clicks")
    assert found.hint == "datasets: [clicks] in bootstrap/Pulumi.prod.yaml"


def test_a_role_that_no_stack_grants_by_itself_is_told():
    assert told(
        buckets={
            "a": {"members": {"roles/storage.objectViewer": GROUP}},
            "b": {"members": {"roles/storage.admin": GROUP}},
        },
        serviceAccounts={
            "trainer": {
                "members": {"roles/iam.workloadIdentityUser": GROUP},
                "roles": {
                    "acme-ml-prod": ["roles/bigquery.jobUser"],
                    "acme-warehouse": ["roles/bigquery.dataViewer"],
                },
            }
        },
    ) == [
        "buckets.b.members.roles/storage.admin",
        "serviceAccounts.trainer.members.roles/iam.workloadIdentityUser",
        "serviceAccounts.trainer.roles.acme-ml-prod.0",
    ]


def test_a_renamed_entry_has_the_name_that_ci_knows_and_a_local_stack_has_no_ci():
    assert told(buckets={"corpus": {"formerly": "data"}}) == []
    local = {"project": "local-x", "projectNumber": local_project_number("local-x")}
    assert deployers.warnings(stack(**local, buckets={"a": {"name": "acme-datasets"}})) == []


def test_what_ci_may_not_deploy_is_told_with_value_and_hint():
    once = (
        "somebody with the right deploys it, once (docs/environments.md), or gives deploy that "
        "right"
    )
    role = {"members": {"roles/storage.admin": GROUP}}
    datasets = {"acme-ml-prod.clicks": ["roles/bigquery.dataViewer"]}
    roles = {"acme-ml-prod": ["roles/logging.viewer", "roles/bigquery.jobUser"]}
    found = deployers.warnings(
        stack(
            buckets={
                "a": {"name": "acme-datasets"},
                "b": {"existing": "acme-corpus", **{"project": "acme-ml-prod"}},
                "c": {"name": "acme-ml-prod-c-dev"},
                "d": {"name": "other-acme-ml-prod-d-prod"},
                "e": role,
            },
            secrets={"f": {"name": "prod"}, "g": {"existing": "projects/acme-ml-prod/secrets/x"}},
            serviceAccounts={"trainer": {"datasets": datasets, "roles": roles}},
        )
    )
    change, grant = "CI may not change or grant on what is called so", "CI may not grant on it"
    role = "CI may not grant this role"
    assert rows(found) == [
        ("buckets.a.name", change, "acme-datasets", once),
        ("buckets.b.existing", grant, "acme-corpus", once),
        ("buckets.c.name", change, "acme-ml-prod-c-dev", once),
        ("buckets.d.name", change, "other-acme-ml-prod-d-prod", once),
        ("secrets.f.name", change, "projects/acme-ml-prod/secrets/prod", once),
        ("secrets.g.existing", grant, "projects/acme-ml-prod/secrets/x", once),
        ("buckets.e.members.roles/storage.admin", role, "roles/storage.admin", once),
        ("serviceAccounts.trainer.roles.acme-ml-prod.1", role, "roles/bigquery.jobUser", once),
        (
            "serviceAccounts.trainer.datasets.acme-ml-prod.clicks",
            "CI grants on it if bootstrap says so",
            "acme-ml-prod.clicks",
            "datasets: [clicks] in bootstrap/Pulumi.prod.yaml",
        ),
    ]
    assert {each.level for each in found} == {"warning"}
