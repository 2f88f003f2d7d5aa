"""The gcp provider of a component: its project, its region, and as whom it acts.

A component reads its arguments before it declares anything, so the provider is looked up in the
options and in the parent, as Pulumi's SDK does for a resource. What the provider does not say is
the config's (``gcp:project``) or the environment's, as ``pulumi_gcp`` reads them.

Jobs are submitted by Google's clients (``vertex_training.customjob``). They can act as the account
that the provider impersonates. A key or a token they cannot have: it would stand in their inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi
import pulumi_gcp as gcp
from pydantic.alias_generators import to_camel

from vertex_training.errors import Problem
from vertex_training.pulumi_internals import awaited

#: Any resource type of the provider's package.
_TYPE: Final = "gcp:projects/service:Service"
#: Settings of the provider that are arguments of components, too.
PLACE: Final = ("project", "region")
#: Inputs of the provider that hold for resources alone.
_CREDENTIALS: Final = ("access_token", "credentials")
_IMPERSONATE: Final = "impersonate_service_account"


def explicit(opts: pulumi.ResourceOptions | None) -> pulumi.ProviderResource | None:
    """The provider that a component with ``opts`` gives to what is in it; None for the default."""
    if opts is None:
        return None
    several = opts.providers or ()
    given = [*(several.values() if isinstance(several, Mapping) else several)]
    given += [opts.provider] if opts.provider else []
    own = next((each for each in reversed(given) if each.package == "gcp"), None)
    return own or (opts.parent.get_provider(_TYPE) if opts.parent else None)


def value(opts: pulumi.ResourceOptions | None, key: str) -> Any:
    """A setting of the provider of a component, by its name in Python; None if it has none.

    That of a provider which another language declared cannot be read, and is None: the config's
    may be another one.
    """
    provider = explicit(opts)
    if provider is None:
        found = pulumi.Config("gcp").get(to_camel(key))
        return found or (getattr(gcp.config, key) if key in PLACE else None)
    found = getattr(provider, key, None)
    if isinstance(found, pulumi.Output):
        found = awaited(found.future())
    if found is None and isinstance(provider, gcp.Provider) and key in PLACE:
        return value(None, key)
    return found


def submitter_of(component: pulumi.Resource) -> str:
    """The account as which jobs in a component are submitted; empty for the caller's own."""
    return str(value(pulumi.ResourceOptions(parent=component), _IMPERSONATE) or "")


def identity_problems(opts: pulumi.ResourceOptions | None) -> Iterator[Problem]:
    """Yield a problem if the component's provider acts as an account that its jobs cannot use."""
    provider = explicit(opts)
    for key in _CREDENTIALS:
        if value(opts, key) is not None:
            name = key if provider else to_camel(key)
            what = f"the gcp provider has {name}, which would not submit the job"
            hint = f"for both, {_IMPERSONATE if provider else to_camel(_IMPERSONATE)}"
            yield Problem(what, hint=f"{hint}, or application default credentials")
    if provider is not None and not isinstance(provider, gcp.Provider):
        pulumi.log.warn(
            "A gcp provider of another language cannot be read here: its jobs are submitted with "
            "application default credentials, or as GOOGLE_IMPERSONATE_SERVICE_ACCOUNT."
        )
