"""Service accounts of jobs, with all grants to these accounts and to act as these accounts.

Rights of people and CI to submit jobs at all come with the project.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict, Unpack, overload

import pulumi
import pulumi_gcp as gcp
from pulumi import Input, Output

from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.iam import (
    Apis,
    grants_beside,
    log_external_grants,
    make_grants,
    reads_tables,
)
from vertex_training.components.ordering import Resources, Scope
from vertex_training.naming import STAGING, Names
from vertex_training.plan.grants import EXTRA_GRANTS, account_grants, extra_grants
from vertex_training.settings.model import ServiceAccount, Settings
from vertex_training.settings.reader import STAND_INS


class JobIdentity(pulumi.ComponentResource):
    """A service account that jobs run as, with its grants. Existing accounts are not created."""

    email: Output[str]
    """Address that the service returns."""
    address: Output[str]
    """Address, known in a preview."""

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        key: str,
        *,
        fetches_packages: bool = False,
        buckets: Mapping[str, Input[str]],
        secrets: Mapping[str, Input[str]],
        after: Resources,
    ) -> None:
        """Declare the account. ``fetches_packages``: the account may read the staging bucket.

        ``buckets`` are bucket names, ``secrets`` full names of secrets, by key.
        """
        super().__init__("vertextraining:identities:TrainingAccount", scope.name, None, scope.opts)
        names, account = settings.names, settings.service_accounts[key]
        outputs = {f"b/{names.bucket(bucket)}": name for bucket, name in buckets.items()}
        outputs |= {names.secret(secret): path for secret, path in secrets.items()}
        if account.existing:
            self.email = self.address = Output.from_input(account.existing)
        else:
            resource = gcp.serviceaccount.Account(
                f"{scope.name}-account",
                project=names.project,
                account_id=names.account_id(key),
                display_name=f"Training jobs: {key} ({names.stack})",
                description=account.description or None,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            self.email = resource.email
            self.address = resource.account_id.apply(lambda _: names.account_email(key))
            outputs |= account_outputs(resource, names, key)
        grants = account_grants(settings, key, fetches_packages=fetches_packages)
        make_grants(scope.name, grants, pulumi.ResourceOptions(parent=self), outputs)
        self.register_outputs({"email": self.email})


def account_outputs(
    account: gcp.serviceaccount.Account, names: Names, key: str
) -> dict[str, pulumi.Output[str]]:
    """Return the outputs of an account that :func:`make_grants` uses."""
    return {
        f"serviceAccount:{names.account_email(key)}": account.member,
        # Previews show this name; `account.name` is equal, but unknown before the account exists.
        names.account(key): account.account_id.apply(lambda _: names.account(key)),
    }


#: Arguments of the component: fields of an account in a stack file.
FIELDS: Final = ("name", "existing", "members", "roles", "datasets", "calls_vertex", "description")
#: Placeholders of unknown names, followed by a number.
UNKNOWN: Final = {"buckets": "not-known-yet-", "secrets": "projects/not-known/secrets/not-yet-"}


class TrainingAccountArgs(TypedDict):
    """Arguments of :class:`TrainingAccount`."""

    project: NotRequired[Input[str]]
    """Id of the project that owns the account; default: project of the gcp provider."""
    environment: NotRequired[Input[str]]
    """Suffix of the account id (``NAME-ENVIRONMENT``); default: the Pulumi stack's name."""
    base_name: NotRequired[Input[str]]
    """Prefix of the account id (``BASE_NAME-ENVIRONMENT``); default: the component's name."""
    name: NotRequired[Input[str]]
    """Part of the address before the ``@``; default: ``BASE_NAME-ENVIRONMENT``."""
    existing: NotRequired[Input[str]]
    """Address of an existing account. The component manages only its grants."""
    reads: NotRequired[Mapping[str, Input[str]]]
    """Names of buckets that the account may read, by key; may be unknown in a preview."""
    writes: NotRequired[Mapping[str, Input[str]]]
    """Names of buckets whose objects the account may read, write and delete, by key. Names may be
    unknown in a preview."""
    secrets: NotRequired[Mapping[str, Input[str]]]
    """Full names of secrets that the account may read, by key; may be unknown in a preview."""
    calls_vertex: NotRequired[Input[bool]]
    """Grant the account the right to call Vertex AI (experiments, model upload, TensorBoard). The
    account can then also submit jobs without ``serviceAccount``, which can access all buckets and
    datasets of the project."""
    roles: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Project -> roles of the account in this project. The owner of another project must grant
    the roles there."""
    datasets: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """BigQuery dataset -> roles of the account on this dataset, such as
    ``roles/bigquery.dataViewer``. The owner of another project must grant the roles there. With any
    dataset, the account may also create read sessions in its project. Queries require
    ``roles/bigquery.jobUser`` in ``roles``."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role -> IAM members that get this role on the account, in addition to submitters."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as this account."""
    description: NotRequired[Input[str]]
    """Description of the account in the console."""


class TrainingAccount(pulumi.ComponentResource):
    """A service account that jobs run as, with a grant on each bucket and secret that it uses.

    The component's name is part of the address: lowercase letters, digits and hyphens. The account
    may also write logs. Enables IAM and Resource Manager, and BigQuery if ``datasets`` is set.

    Example::

        account = TrainingAccount(
            "trainer",
            {
                "project": "local-training",
                "reads": {"data": buckets.names["data"]},
                "writes": {"artifacts": buckets.names["artifacts"]},
                "submitters": ["group:ml-engineers@example.com"],
            },
        )
        pulumi.export("trainer", account.email)
    """

    email: Output[str]
    """Address, known in a preview. Resources with this input depend on the grants too."""
    member: Output[str]
    """IAM member of the account: ``serviceAccount:ADDRESS``."""

    @overload
    def __init__(self, name: str, /, args: TrainingAccountArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingAccountArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingAccountArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Declare the account and its grants. Raises ArgumentsError with every mistake."""
        arguments = Arguments(f"TrainingAccount '{name}'", opts)
        values = arguments.named(args, keywords, TrainingAccountArgs.__annotations__)
        access = {verb: arguments.mapping(values, verb) for verb in ("reads", "writes", "secrets")}
        key, environment = arguments.base_name(values, name), arguments.environment(values)
        raw = _config(key, environment, values, access, arguments)
        stack = arguments.stack(raw, environment)
        super().__init__("vertex-training:index:TrainingAccount", name, arguments.inputs, opts)
        scope, settings, needed = Scope(name, self), stack.declared, ["iam", "cloudresourcemanager"]
        needed += ["bigquery", "bigquerystorage"] if reads_tables(settings) else []
        waits = arguments.prerequisites()
        apis = Apis(scope.child("apis"), settings.project, needed, after=waits)
        account = JobIdentity(
            scope,
            settings,
            key,
            buckets=access["reads"] | access["writes"],
            secrets=access["secrets"],
            after=apis.on(*needed),
        )
        grants_beside(EXTRA_GRANTS, scope.child("extra"), extra_grants(settings), [account, apis])
        log_external_grants(stack, {}, self)
        address = settings.names.account_email(key)
        set_outputs(self, {"email": address, "member": f"serviceAccount:{address}"})


def _config(
    name: str,
    environment: str,
    values: Mapping[str, Any],
    access: Mapping[str, Mapping[str, Input[str]]],
    arguments: Arguments,
) -> dict[str, Any]:
    at = ("serviceAccounts", name)
    account = arguments.section(ServiceAccount, values, FIELDS, at=at)
    raw = arguments.section(Settings, values, ("project", "submitters"))
    used: dict[str, dict[str, Any]] = {"buckets": {}, "secrets": {}}
    code = Names(str(raw.get("project")), "", "", environment).bucket(STAGING)
    for verb, entries in access.items():
        section = "secrets" if verb == "secrets" else "buckets"
        account[verb] = list(entries)
        arguments.alias((verb,), (*at, verb))
        for key, value in entries.items():
            known = arguments.known(value, (verb, key))
            if known is None or (known == code and verb == "reads"):
                # Another component creates the environment's own bucket.
                known = f"{UNKNOWN[section]}{len(used[section])}"
            used[section][key] = {"existing": known}
            arguments.alias((verb, key), (section, key, "existing"))
    return raw | used | {"region": STAND_INS["region"], "serviceAccounts": {name: account}}
