"""Kinds of risks, with their finders and texts. Each row of ``RISKS`` is a kind of risk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET, ENDPOINT, FIREWALL, RESERVATION
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review import (
    destroyed,
    expenses,
    grants,
    guards,
    jobs,
    losses,
    reachability,
    serving,
)
from vertex_training_cli.review.parts import Danger, Quote, Topic, first

_ATTRIBUTES: Final = re.compile(r"\{(\w+)")
#: Text for a finding: a function, or a template of its attributes. A template escapes ``{name}``,
#: but not ``{name!s}``. ``{name:400}`` has at most 400 characters. ``{names:all}`` has all names of
#: a tuple.
Words = str | Callable[[Any, Quote], str]


@dataclass(frozen=True, slots=True)
class RiskKind:
    """One kind of risk. Calling it with a plan returns the findings."""

    find: Callable[..., Iterable[Any]]
    """Function that returns findings in a plan, or in a step and its inputs before and after."""
    headline: str
    """Text before the names in the verdict; empty if the verdict omits the findings."""
    words: Words = "{name}"
    key: str = ""
    """Path of the findings in JSON, like ``policies.lowered``; empty if JSON omits them."""
    question: str = Topic.LIMITS
    """Topic of the summary; empty if the summary omits the findings."""
    danger: Danger = "opens"
    fields: str = ""
    """Fields of a finding in JSON, as in ``formats.KEYS``; empty for only its name."""
    answer: str | None = None
    """Template for a finding in the summary; None for ``headline: words``."""
    in_list: Words | None = None
    """Text in the section on losses; empty for no text, None for ``headline: words``."""
    types: tuple[str, ...] | None = None
    """Types of the steps that ``find`` reads, empty for all types; None if it reads a plan."""
    where: Callable[[Any], object] = lambda finding: finding

    def __call__(self, plan: Plan) -> tuple[Any, ...]:
        """Return the findings in a plan."""
        if self.types is None:
            return tuple(filter(self.where, self.find(plan)))
        steps = plan.inputs_of(*self.types)
        return tuple(sorted(finding for step in steps for finding in self.find(*step)))

    def name(self, finding: Any, quote: Quote) -> str:
        """Return the text for a finding in the verdict."""
        return _worded(self.words, finding, quote)

    def phrase(self, finding: Any, quote: Quote) -> str:
        """Return the text for a finding in the summary."""
        place = f"{self.headline}: {{}}" if self.answer is None else self.answer
        return place.format(self.name(finding, quote))

    def line(self, finding: Any, quote: Quote) -> str:
        """Return the text for a finding in the section on losses."""
        if self.in_list is None:
            return f"{self.headline}: {self.name(finding, quote)}"
        return _worded(self.in_list, finding, quote)


class _EscapedValue:
    def __init__(self, value: Any, quote: Quote) -> None:
        self.value, self.quote = value, quote

    def __format__(self, spec: str) -> str:
        if isinstance(self.value, tuple):
            names = [self.quote(item) for item in self.value]
            return ", ".join(names) if spec == "all" else first(names)
        if spec.isdecimal():
            return self.quote(self.value, int(spec))
        return format(self.value, spec) if spec else self.quote(self.value or "")

    def __str__(self) -> str:
        return str(self.value)


def _worded(words: Words, finding: Any, quote: Quote) -> str:
    if not isinstance(words, str):
        return words(finding, quote)
    shown = {
        name: _EscapedValue(getattr(finding, name), quote) for name in _ATTRIBUTES.findall(words)
    }
    return words.format_map(shown).removesuffix(" ()")


#: Texts and JSON fields of several kinds.
_WHAT: Final = "{name} ({what})"
_CHANGE: Final = "{name} {old} → {new}"
_FEWER: Final = "{name} ({what!s}: {old!s} → {new!s})"
_PATH: Final = "path=name old new"
_AMOUNTS: Final = "name what old new putBack=also"

# fmt: off
#: All kinds of risks, in the order of a report.
RISKS: Final[tuple[RiskKind, ...]] = (
    RiskKind(destroyed.recreated_empty, "deleted in the cloud, recreated without data",
             "{name} ({what:400})", "madeAnew", Topic.LOST, "destroys",
             "name restore=what protected=also"),
    RiskKind(destroyed.destroyed, "data is lost", "{name} ({end!s})", "", Topic.LOST, "destroys",
             answer="{}", in_list="", where=lambda change: change.is_loss),
    RiskKind(destroyed.substitutes, "replaced by a new, empty resource", "{name} (before: {old})",
             "substitutes", Topic.LOST, "destroys", _PATH),
    RiskKind(losses.key_changes, "no longer encrypted with your key", "{name} ({what})", "keysGone",
             Topic.LOST, "destroys", "old new names=what", where=lambda change: not change.new),
    RiskKind(losses.kept_less, "data is lost", _FEWER, "dataLosses", Topic.LOST, "destroys",
             _AMOUNTS, answer="{}", in_list="data of {name}, {what!s}: {old!s} → {new!s}",
             where=lambda loss: not loss.also),
    RiskKind(serving.ended_endpoints, "endpoint that serves traffic deleted or replaced", _WHAT,
             "endedEndpoints", Topic.LOST, "destroys", "name what"),
    RiskKind(serving.deleted_versions, "model version deleted", _WHAT, "deletedVersions",
             Topic.LOST, "destroys", "name what"),
    RiskKind(guards.lowered, "notifications reduced", _WHAT, "lessTold", Topic.LOST, "destroys",
             "name what", where=lambda less: less.old == "notice" and not less.also),
    RiskKind(losses.kept_less, "manual change undone", _FEWER, "putBack", Topic.LOST,
             fields=_AMOUNTS, in_list="", where=lambda loss: loss.also),
    RiskKind(guards.lowered, "manual change undone", _WHAT, "repaired", Topic.LOST,
             fields="name what", in_list="", where=lambda less: less.also),
    RiskKind(expenses.returned_machines, "reserved machines released", expenses.released,
             "returnedMachines", Topic.LOST, "destroys",
             "name machineType=what zone=old machines?=new replaced=also", types=(RESERVATION,)),
    RiskKind(losses.refusals, "refused by Google or without effect", "{name}", "refusals", "",
             "destroys", "name what",
             in_list="refused by Google or without effect: {name} {what!s}"),
    RiskKind(losses.retention_locks, "retention locked permanently",
             "{name} (objects cannot be deleted for {new:g} days)", "locks", Topic.LOST, "destroys",
             "name days=new", types=(BUCKET,)),
    RiskKind(destroyed.folder_changes, "",
             lambda folder, quote: f"{len(folder.removed)} objects below {quote(folder.name)}"
                                   " (files of the stack)",
             "", Topic.LOST, "destroys", answer="{}", in_list="",
             where=lambda folder: folder.removed),
    RiskKind(destroyed.destroyed, "deployment refused because of protected resources", "{name}", "",
             "", "destroys", in_list="", where=lambda change: change.refused),
    RiskKind(destroyed.unprotected, "protection removed", "{name}", "unprotected", Topic.LOST,
             "destroys", answer="{} loses its protection", in_list="{name} loses its protection"),
    RiskKind(destroyed.destroyed, "", "{name} ({fate!s})", "", Topic.LOST, "destroys", answer="{}",
             in_list="", where=lambda change: not change.is_loss),
    RiskKind(destroyed.renames, "renamed without formerly",
             "{old} → {new} ({what} in {also} keeps the resource)", "renames", Topic.LOST,
             fields="section=name old new"),
    RiskKind(losses.key_changes, "encrypted with another key", "{name} → {also} ({what})",
             "keysChanged", fields="old new names=what", where=lambda change: change.new),
    RiskKind(guards.raised_limits, "limits raised", _CHANGE, "raisedLimits", fields=_PATH,
             answer="{}", in_list="limit {name}: {old} → {new}"),
    RiskKind(guards.lowered_levels, "policy levels lowered", _CHANGE, "policies.lowered",
             Topic.POLICIES, fields=_PATH, answer="level lowered: {}", in_list=""),
    RiskKind(grants.administrators, "new administrator roles", grants.granted, "", "", in_list=""),
    RiskKind(grants.widened, "custom roles with new permissions", _WHAT, "widenedRoles",
             Topic.RIGHTS, fields="name permissions=what", types=grants.CUSTOM_ROLES),
    RiskKind(grants.account_keys, "new account keys", "{what} of {name}", "accountKeys",
             Topic.RIGHTS, fields="account=name name=what", types=()),
    RiskKind(grants.lifted, "permissions no longer denied to", _WHAT, "liftedDenials", Topic.RIGHTS,
             fields="principal=name permissions=what"),
    RiskKind(grants.strangers, "new members of other domains", "{member}", "membersOfOtherDomains",
             "", in_list=""),
    RiskKind(grants.changed_conditions, "changed conditions of grants", grants.condition_change,
             "changedConditions", "", in_list="",
             fields="member=name role=what before=old condition=new"),
    RiskKind(reachability.sign_ins, "changed external sign-in", "{name} ({what}: {old} → {new})",
             "signIns", Topic.RIGHTS, fields="name what before=old after=new", in_list="",
             types=(reachability.IDENTITY_PROVIDER,)),
    RiskKind(reachability.shells, "new shell access to machines of jobs", "{name}", "shells",
             Topic.RIGHTS, types=tuple(WITH_REQUEST)),
    RiskKind(jobs.moved_services, "jobs moved to another service", "{name} ({old} → {new})",
             "movedServices", Topic.RUNS, in_list="", fields="name before=old after=new",
             types=tuple(WITH_REQUEST)),
    RiskKind(serving.doubtful_traffic, "traffic to a worse or unmeasured version", _WHAT,
             "doubtfulTraffic", Topic.RUNS, fields="name what"),
    RiskKind(serving.served_runs, "job replaced, although a model version uses its run", _WHAT,
             "servedRuns", Topic.RUNS, fields="name what"),
    RiskKind(serving.opened_endpoints, "endpoint becomes public", _WHAT, "publicEndpoints",
             Topic.PUBLIC, "destroys", "name what", types=(ENDPOINT,)),
    RiskKind(serving.raised_costs, "higher monthly cost of endpoints", _WHAT, "costlierEndpoints",
             Topic.COSTS, fields="name what"),
    RiskKind(lambda plan: guards.new_entries(plan, "drift", guards.exceptions),
             "drift no longer reported", "{new}", "driftExceptions", fields=_PATH),
    RiskKind(lambda plan: guards.new_entries(
                 plan, "drift", lambda drift: as_mapping(drift.get("acceptedLosses"))),
             "loss accepted", "{name} ({new})", "acceptedLosses", fields=_PATH),
    RiskKind(lambda plan: guards.new_entries(plan, "allowedSecrets"),
             "upload allowed despite a possible secret", "{name} ({new})", "allowedSecrets",
             fields=_PATH),
    RiskKind(guards.lowered_rules, "rule levels lowered", _CHANGE, "loweredRules", fields=_PATH),
    RiskKind(guards.lowered, "guards lowered", _WHAT, "loweredGuards", fields="name what",
             where=lambda less: less.old == "guard" and not less.also),
    RiskKind(guards.changed_overrides, "", "{name}", "overrides", "", fields=_PATH,
             in_list="override of an included file: {name}: {old} → {new}"),
    RiskKind(reachability.opened_to_everybody, "opened to everybody", "{name}", "openedToEverybody",
             Topic.PUBLIC, "destroys", answer="{}", in_list="", types=()),
    RiskKind(reachability.opened_egress, "firewall rules with egress to any address", "{name}",
             "egressToAnywhere", Topic.PUBLIC, "destroys", in_list="", types=(FIREWALL,)),
    RiskKind(reachability.external_addresses, "new external addresses of", "{name}",
             "externalAddresses", Topic.PUBLIC, "destroys", in_list="", types=()),
    RiskKind(reachability.not_judged, "", "{what} of {name}", "notJudged", Topic.UNSEEN,
             answer="{}", in_list="", fields="name what"),
    RiskKind(losses.cold_buckets, "retrieval fees", losses.cold, "coldBuckets", Topic.COSTS,
             fields="name old new"),
    RiskKind(expenses.personal_data, "possible personal data in snapshots", "{name} ({what:all})",
             "personalData", Topic.READABLE, fields="name columns=what"),
)
# fmt: on
