"""``TrainingAccount``: an account that jobs run as, and its grants."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, Optional, TypedDict

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.components import identities
from vertex_training.environment import Scope
from vertex_training.plan import stack_grants
from vertex_training.public.declaring import apis_of, output_of, prerequisites
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.settings.model import ServiceAccount, Settings
from vertex_training.settings.partial import STAND_INS

FIELDS: Final = ("name", "existing", "members", "roles", "datasets", "calls_vertex", "description")
OTHERS: Final = ("project", "environment", "submitters", "reads", "writes", "secrets")
#: Stand for names that are not known yet.
UNKNOWN: Final = {"buckets": "not-known-yet", "secrets": "projects/not-known/secrets/not-known-yet"}


class TrainingAccountArgs(TypedDict):
    """Arguments of :class:`TrainingAccount`."""

    project: Input[str]
    """Id of the project that owns it."""
    environment: NotRequired[Input[str]]
    """Ends its address: ``NAME-ENVIRONMENT``. The Pulumi stack's name without it."""
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
    """Whether the code calls Vertex AI itself (experiments, model upload, TensorBoard)."""
    roles: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Project -> roles of the account there. The owners of other projects grant theirs."""
    datasets: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """BigQuery dataset -> roles of the account there; the owner of the dataset grants them."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role on the account itself -> IAM members that get it, beside the submitters."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as it."""
    description: NotRequired[Input[str]]


class TrainingAccount(pulumi.ComponentResource):
    """An account that jobs run as, with a grant on each bucket and secret that it uses.

    Its name is a part of its address: lowercase letters, digits and hyphens. Beside what is asked
    for it may write logs. Enables IAM and Resource Manager.

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

    def __init__(
        self,
        name: str,
        args: TrainingAccountArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the arguments and declare the account with its grants.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingAccount '{name}'")
        given = arguments.named(args, (*FIELDS, *OTHERS))
        access = {verb: arguments.mapping(given, verb) for verb in ("reads", "writes", "secrets")}
        raw = _config(name, given, access, arguments)
        stack = arguments.stack(raw, environment_name(given, arguments))
        super().__init__("vertex-training:index:TrainingAccount", name, {}, opts)
        settings = stack.settings
        needed = ("iam", "cloudresourcemanager")
        apis = apis_of(self, name, settings.project, needed, prerequisites(opts, arguments))
        made = identities.TrainingAccount(
            name,
            key=name,
            names=settings.names,
            account=settings.service_accounts[name],
            grants=stack_grants.account_grants(settings, name),
            buckets=access["reads"] | access["writes"],
            secrets=access["secrets"],
            after=apis.on(*needed),
            opts=pulumi.ResourceOptions(parent=self),
        )
        program.declare_extra_grants(Scope(name, self), stack, [made])
        if report := stack.external_grants({}):
            pulumi.log.info(report, self)
        address = settings.names.account_email(name)
        self.email = output_of(self, address)
        self.member = output_of(self, f"serviceAccount:{address}")
        self.register_outputs({"email": self.email, "member": self.member})


def _config(
    name: str,
    given: Mapping[str, Any],
    access: Mapping[str, Mapping[str, Input[str]]],
    arguments: Arguments,
) -> dict[str, Any]:
    """The arguments as a stack with one account; what it uses is there already."""
    at = ("serviceAccounts", name)
    account = arguments.section(ServiceAccount, given, FIELDS, at=at)
    raw = arguments.section(Settings, given, ("project", "submitters"))
    used: dict[str, dict[str, Any]] = {"buckets": {}, "secrets": {}}
    for verb, entries in access.items():
        section = "secrets" if verb == "secrets" else "buckets"
        account[verb] = list(entries)
        arguments.alias((verb,), (*at, verb))
        for key, value in entries.items():
            known = arguments.known(value, (verb, key))
            used[section][key] = {"existing": UNKNOWN[section] if known is None else known}
            arguments.alias((verb, key), (section, key, "existing"))
    return raw | used | {"region": STAND_INS["region"], "serviceAccounts": {name: account}}
