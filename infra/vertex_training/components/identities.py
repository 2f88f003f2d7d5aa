"""Accounts that jobs run as, their grants, and who may act as them.

Owns every grant of such an account (``vertex_training.plan.stack_grants``). Does not own the grants
that let people and CI submit jobs at all; those come with the project.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict, Unpack, overload

import pulumi
import pulumi_gcp as gcp
from pulumi import Input, Output

from vertex_training.components.apis import Apis, reads_tables
from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.iam import grants_beside, log_external_grants, make_grants
from vertex_training.components.ordering import Scope
from vertex_training.naming import STAGING, Names
from vertex_training.plan.grants import EXTRA_GRANTS
from vertex_training.plan.stack_grants import account_grants, extra_grants
from vertex_training.settings.model import ServiceAccount, Settings
from vertex_training.settings.reader import STAND_INS


class JobIdentity(pulumi.ComponentResource):
    """One account that jobs run as, and its grants; the account is made unless it exists."""

    email: Output[str]
    """Its address as the service has it."""
    address: Output[str]
    """The same, known before the account exists."""

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        key: str,
        *,
        fetches_packages: bool = False,
        buckets: Mapping[str, Input[str]],
        secrets: Mapping[str, Input[str]],
        after: Sequence[pulumi.Resource],
    ) -> None:
        """``fetches_packages``: whether a job of it fetches code from the staging bucket.

        ``buckets`` are the names, ``secrets`` the resource names of what it may name.
        """
        super().__init__("vertextraining:identities:TrainingAccount", scope.name, None, scope.opts)
        names, account = settings.names, settings.service_accounts[key]
        outputs = {f"b/{names.bucket(bucket)}": name for bucket, name in buckets.items()}
        outputs |= {names.secret(secret): path for secret, path in secrets.items()}
        if account.existing:
            self.email = self.address = Output.from_input(account.existing)
        else:
            made = gcp.serviceaccount.Account(
                f"{scope.name}-account",
                project=names.project,
                account_id=names.account_id(key),
                display_name=f"Training jobs: {key} ({names.stack})",
                description=account.description or None,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            self.email = made.email
            self.address = made.account_id.apply(lambda _: names.account_email(key))
            outputs |= account_outputs(made, names, key)
        grants = account_grants(settings, key, fetches_packages=fetches_packages)
        make_grants(scope.name, grants, pulumi.ResourceOptions(parent=self), outputs)
        self.register_outputs({"email": self.email})


def account_outputs(
    account: gcp.serviceaccount.Account, names: Names, key: str
) -> dict[str, pulumi.Output[str]]:
    """Outputs of an account by what grants name it, as :func:`make_grants` takes them."""
    return {
        f"serviceAccount:{names.account_email(key)}": account.member,
        # Not `account.name`, which is the same but unknown before the account exists: a preview
        # shows what a grant will be on. ``apply`` keeps the grants after the account.
        names.account(key): account.account_id.apply(lambda _: names.account(key)),
    }


#: Arguments that are fields of an account in a stack file, and the others.
FIELDS: Final = ("name", "existing", "members", "roles", "datasets", "calls_vertex", "description")
OTHERS: Final = ("project", "environment", "base_name", "submitters", "reads", "writes", "secrets")
#: Stand for names that are not known yet, each with a number.
UNKNOWN: Final = {"buckets": "not-known-yet-", "secrets": "projects/not-known/secrets/not-yet-"}


class TrainingAccountArgs(TypedDict):
    """Arguments of :class:`TrainingAccount`."""

    project: NotRequired[Input[str]]
    """Id of the project that owns it. The provider's without it."""
    environment: NotRequired[Input[str]]
    """Ends its address: ``NAME-ENVIRONMENT``. The Pulumi stack's name without it."""
    base_name: NotRequired[Input[str]]
    """Begins its address: ``BASE_NAME-ENVIRONMENT``. The component's own name without it."""
    name: NotRequired[Input[str]]
    """The part of its address before the ``@``, if another one is wanted."""
    existing: NotRequired[Input[str]]
    """The address of an account that is there: only its grants are made."""
    reads: NotRequired[Mapping[str, Input[str]]]
    """Names of buckets whose objects it may read, each under a key that names the grant. A name may
    be unknown in a preview."""
    writes: NotRequired[Mapping[str, Input[str]]]
    """Names of buckets whose objects it may read, write and delete. May be unknown likewise."""
    secrets: NotRequired[Mapping[str, Input[str]]]
    """Secrets whose value it may read, as ``projects/P/secrets/S``. May be unknown likewise."""
    calls_vertex: NotRequired[Input[bool]]
    """The code calls Vertex AI itself (experiments, model upload, TensorBoard). By a job
    that names no account it then reaches all buckets and datasets of the project."""
    roles: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Project -> roles of the account there. The owners of other projects grant theirs."""
    datasets: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """BigQuery dataset -> roles of the account there, such as ``roles/bigquery.dataViewer``. Owners
    of other projects grant theirs. With any, the account may make read sessions in its project;
    queries take ``roles/bigquery.jobUser`` in ``roles``."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role on the account itself -> IAM members that get it, beside the submitters."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as it."""
    description: NotRequired[Input[str]]
    """Description of the account in the console."""


class TrainingAccount(pulumi.ComponentResource):
    """An account that jobs run as, with a grant on each bucket and secret that it uses.

    Its name is a part of its address: lowercase letters, digits and hyphens. Beside what is asked
    for it may write logs. Enables IAM and Resource Manager, and BigQuery
    where it reads datasets.

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
    """Its address, known before it exists; what takes it waits for the grants as well."""
    member: Output[str]
    """``serviceAccount:ADDRESS``, as IAM takes it."""

    @overload
    def __init__(self, name: str, /, args: TrainingAccountArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingAccountArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingAccountArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Check the arguments and declare the account with its grants.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingAccount '{name}'", opts)
        values = arguments.named(args, keywords, (*FIELDS, *OTHERS))
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
    """The arguments as a stack with one account; what it uses is there already."""
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
                # The environment's own bucket is made by another component, and here a given one.
                known = f"{UNKNOWN[section]}{len(used[section])}"
            used[section][key] = {"existing": known}
            arguments.alias((verb, key), (section, key, "existing"))
    return raw | used | {"region": STAND_INS["region"], "serviceAccounts": {name: account}}
