"""What each resource of an environment lies in and waits for, and what the environment tells."""

from __future__ import annotations

from typing import Any, Final

import pulumi
import pytest

from tests.unit.bootstrap.recorder import registered

COMPUTE: Final = "109876543210-compute"
EVERYTHING: Final = {
    "schedules": True,
    "pullRequests": True,
    "protectedAccounts": [f"{COMPUTE}@developer.gserviceaccount.com"],
}
APIS: Final = [
    "api-serviceusage", "api-cloudresourcemanager", "api-iam", "api-iamcredentials", "api-sts",
    "api-storage", "api-cloudkms",
]  # fmt: skip
COMPONENTS: Final = {
    "state": "State", "github": "Federation", "plan": "Identity", "deploy": "Identity",
    "preview": "Identity", "advance": "Advance", "denial": "Denial",
}  # fmt: skip
TAGGED: Final = [
    "denial-of-plan", "denial-of-deploy", "denial-of-preview", f"denial-of-account-{COMPUTE}",
]  # fmt: skip
#: What takes an id or a name of a resource waits for that by itself.
BY_INPUTS: Final = ("github-provider", "denial-tag-value", *TAGGED)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def export(name: str, value: Any) -> None:
        pulumi.Output.from_input(value).apply(lambda known: found.update({name: known}))

    monkeypatch.setattr(pulumi, "export", export)
    return found


def test_all_of_a_component_waits_for_the_apis_and_for_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places: dict[str, tuple[str, list[str]]] = {}
    begin = pulumi.Resource.__init__

    def remember(
        self: Any, type_: str, name: str, custom: bool, props: Any = None, opts: Any = None,
        *more: Any, **given: Any,
    ) -> None:  # fmt: skip
        opts = opts or pulumi.ResourceOptions()
        waits_for = [each._name for each in opts.depends_on or ()]
        places[name] = (opts.parent._name if opts.parent else "", waits_for)
        begin(self, type_, name, custom, props, opts, *more, **given)

    monkeypatch.setattr(pulumi.Resource, "__init__", remember)
    made = registered("prod", **EVERYTHING)
    components = {
        name: each["type"].removeprefix("vertextraining:bootstrap:")
        for name, each in made.items()
        if not each["type"].startswith("gcp:")
    }
    assert components == COMPONENTS
    for name in (*COMPONENTS, *APIS):
        assert places[name] == ("", []), name
    for name in made.keys() - {*COMPONENTS, *APIS}:
        waits_for = APIS
        if name.endswith("-from-workflows"):
            waits_for = ["github"]
        elif name in BY_INPUTS:
            waits_for = []
        elif name == "denial-policy":  # before that, it would keep nobody from those accounts
            waits_for = TAGGED
        assert places[name] == (name.partition("-")[0], waits_for), name


def test_components_end_with_their_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: dict[str, set[str]] = {}

    def end(self: Any, outputs: Any) -> None:
        ended[self._name] = set(outputs)

    monkeypatch.setattr(pulumi.ComponentResource, "register_outputs", end)
    registered("prod", **EVERYTHING)
    assert ended == {
        "state": {"bucket", "key"}, "github": {"pool"}, "plan": {"email"}, "deploy": {"email"},
        "preview": {"email"}, "advance": set(), "denial": set(),
    }  # fmt: skip


OUTPUTS: Final = {
    "backend": "gs://acme-ml-prod-pulumi-state",
    "secretsProvider": "gcpkms://projects/acme-ml-prod/locations/us-central1/keyRings/pulumi-prod/"
    "cryptoKeys/stack-secrets",
    "workloadIdentityProvider": "projects/109876543210/locations/global/workloadIdentityPools/"
    "github-prod/providers/github",
    "planAccount": "ci-plan-prod@acme-ml-prod.iam.gserviceaccount.com",
    "deployAccount": "ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com",
    "deployer": "serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com",
}
POOL: Final = (
    "principalSet://iam.googleapis.com/projects/109876543210/locations/global/"
    "workloadIdentityPools/github-prod/attribute.ci_role"
)


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {}),
        (
            EVERYTHING,
            {
                "advancer": f"{POOL}/advance",
                "previewAccount": "ci-preview-prod@acme-ml-prod.iam.gserviceaccount.com",
                "builder": f"{POOL}/build",
            },
        ),
    ],
)
def test_an_environment_tells_what_github_and_the_stack_need(
    exported: dict[str, Any], given: dict[str, Any], more: dict[str, str]
) -> None:
    registered("prod", **given)
    assert exported == OUTPUTS | more
