"""The deny policy: permissions that CI's accounts never have, independent of their roles.

A condition cannot check the name of a service account, so a condition cannot prevent ``deploy``
from acting as ``plan``. But a denial condition can check tags. Only users with permissions on tags
can bind them, and the protected accounts have such a tag.
https://docs.cloud.google.com/iam/docs/deny-overview#denial-conditions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.foundation.settings import Settings

#: Permissions that no deployment and no plan needs. Deny policies support these permissions:
#: https://docs.cloud.google.com/iam/docs/deny-permissions-support
NEVER: Final = (
    # other identities
    "iam.googleapis.com/serviceAccountKeys.*",
    "iam.googleapis.com/serviceAccounts.getAccessToken",
    "iam.googleapis.com/serviceAccounts.getOpenIdToken",
    "iam.googleapis.com/serviceAccounts.implicitDelegation",
    "iam.googleapis.com/serviceAccounts.signBlob",
    "iam.googleapis.com/serviceAccounts.signJwt",
    # federation
    "iam.googleapis.com/workloadIdentityPools.*",
    "iam.googleapis.com/workloadIdentityPoolProviders.*",
    "iam.googleapis.com/workloadIdentityPoolProviderKeys.*",
    # content of roles
    "iam.googleapis.com/roles.create",
    "iam.googleapis.com/roles.update",
    "iam.googleapis.com/roles.delete",
    "iam.googleapis.com/roles.undelete",
    # values of secrets
    "secretmanager.googleapis.com/versions.access",
    "secretmanager.googleapis.com/versions.add",
    "secretmanager.googleapis.com/versions.destroy",
    "secretmanager.googleapis.com/versions.disable",
    "secretmanager.googleapis.com/versions.enable",
    # keys of Pulumi's secrets, which deployments use but never change
    "cloudkms.googleapis.com/cryptoKeyVersions.destroy",
    "cloudkms.googleapis.com/keyRings.setIamPolicy",
    # the project itself
    "cloudresourcemanager.googleapis.com/projects.delete",
    "cloudresourcemanager.googleapis.com/projects.move",
    "cloudresourcemanager.googleapis.com/projects.createBillingAssignment",
    "cloudresourcemanager.googleapis.com/projects.deleteBillingAssignment",
    "serviceusage.googleapis.com/services.disable",
)  # fmt: skip
#: Permissions that deployments have on the stack's accounts, but not on accounts with the tag.
NOT_TO_PROTECTED: Final = (
    "iam.googleapis.com/serviceAccounts.actAs",
    "iam.googleapis.com/serviceAccounts.setIamPolicy",
    "iam.googleapis.com/serviceAccounts.update",
    "iam.googleapis.com/serviceAccounts.delete",
    "iam.googleapis.com/serviceAccounts.undelete",
    "iam.googleapis.com/serviceAccounts.disable",
    "iam.googleapis.com/serviceAccounts.enable",
)
#: Value of the tag on protected accounts.
PROTECTED: Final = "protected"


def tag_key(settings: Settings) -> str:
    """Return the short name of the tag's key. The name is unique in the project."""
    return f"vertex-training-{settings.stack}"


def denial_condition(settings: Settings) -> str:
    """Return the CEL condition that the resource has the tag. Failed evaluations also deny."""
    return f"resource.matchTag('{settings.project}/{tag_key(settings)}', '{PROTECTED}')"


def principal(email: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return the principal of a service account in deny policies.

    https://docs.cloud.google.com/iam/docs/principal-identifiers#deny
    """
    return pulumi.Output.concat("principal://iam.googleapis.com/projects/-/serviceAccounts/", email)


class Denial(pulumi.ComponentResource):
    """The deny policy on the project, and the tag of protected accounts."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        accounts: Mapping[str, gcp.serviceaccount.Account],
        after: Sequence[pulumi.Resource],
    ) -> None:
        """Declare the policy, which denies permissions to ``accounts`` and protects them."""
        super().__init__("vertextraining:bootstrap:Denial", name)
        self._name, self._settings = name, settings
        child = pulumi.ResourceOptions(parent=self, depends_on=after)
        value = self._create_tag(child)
        tagged = {key: account.unique_id for key, account in accounts.items()}
        others = sorted(_by_name(settings.protected_accounts).items())
        tagged |= {f"account-{name}": email for name, email in others}
        bindings = [self._bind_tag(key, account, value) for key, account in tagged.items()]
        principals = [principal(account.email) for account in accounts.values()]
        gcp.iam.DenyPolicy(
            f"{name}-policy",
            name=f"vertex-training-{settings.stack}",
            parent=f"cloudresourcemanager.googleapis.com%2Fprojects%2F{settings.project}",
            display_name=f"Out of reach of CI ({settings.stack})",
            rules=[
                _rule("What no deployment needs", principals, NEVER),
                _rule("Accounts of CI", principals, NOT_TO_PROTECTED, denial_condition(settings)),
            ],
            opts=pulumi.ResourceOptions(parent=self, depends_on=bindings),
        )
        self.register_outputs({})

    def _create_tag(self, opts: pulumi.ResourceOptions) -> gcp.tags.TagValue:
        key = gcp.tags.TagKey(
            f"{self._name}-tag-key",
            parent=f"projects/{self._settings.project}",
            short_name=tag_key(self._settings),
            description="Accounts that CI must not change or act as",
            opts=opts,
        )
        return gcp.tags.TagValue(
            f"{self._name}-tag-value",
            parent=key.id,
            short_name=PROTECTED,
            description="bootstrap/README.md",
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _bind_tag(
        self, key: str, account: pulumi.Input[str], value: gcp.tags.TagValue
    ) -> gcp.tags.TagBinding:
        """Bind the tag to the account with this unique id or address.

        https://docs.cloud.google.com/iam/docs/service-accounts-tags
        """
        service = f"//iam.googleapis.com/projects/{self._settings.project}/serviceAccounts"
        return gcp.tags.TagBinding(
            f"{self._name}-of-{key}",
            parent=pulumi.Output.concat(service, "/", account),
            tag_value=value.id,
            opts=pulumi.ResourceOptions(parent=self),
        )


def _by_name(emails: Sequence[str]) -> dict[str, str]:
    """Return addresses by the name before ``@``, or by the whole address if a name repeats."""
    result: dict[str, str] = {}
    for email in dict.fromkeys(emails):
        name = email.partition("@")[0]
        result[email if name in result else name] = email
    return result


def _rule(
    title: str,
    principals: Sequence[pulumi.Input[str]],
    permissions: Sequence[str],
    condition: str = "",
) -> gcp.iam.DenyPolicyRuleArgs:
    when = gcp.iam.DenyPolicyRuleDenyRuleDenialConditionArgs(title=title, expression=condition)
    return gcp.iam.DenyPolicyRuleArgs(
        description=title,
        deny_rule=gcp.iam.DenyPolicyRuleDenyRuleArgs(
            denied_principals=principals,
            denied_permissions=list(permissions),
            denial_condition=when if condition else None,
        ),
    )
