"""First screen of a report: readiness, next commands, verdict, and a summary of twelve topics.

Markdown and the page show the same rows. JSON has the topics as keys of ``answers``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.costs import usd
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.customjob.rules.batch import NAMES as SERVICES
from vertex_training.errors import counted
from vertex_training.images.pins import PLACEHOLDER
from vertex_training_cli.review import expenses, grants, serving
from vertex_training_cli.review.destroyed import ACCEPTED_LOSS
from vertex_training_cli.review.jobs import SAME_REQUEST, image_name, repeats_in_words
from vertex_training_cli.review.parts import (
    NAMED,
    Quote,
    Row,
    Topic,
    cut,
    first,
    shortened,
)
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport, image_versions

#: Maximum number of parts in the verdict. Further parts are counted.
PARTS: Final = 12
#: Rules of problems that forbid a plan with a successful preview, with noun and verb.
BESIDE_THE_PLAN: Final = (
    (("image-missing", "image-platform"), "image", "cannot run"),
    (("job-changes-stacks",), "running job", "would move to another stack"),
    ((SAME_REQUEST,), "job", "cannot be replaced by the same request"),
)
#: Reason against a deployment without a policy violation.
REFUSED: Final = (
    "the deployment is refused: a protected resource would be recreated without its data"
)
PEOPLE: Final = "Grants to people"
MACHINES: Final = "Grants to machines"
#: Prefixes of members that are not people: service accounts and external identities.
_MACHINES: Final = ("serviceAccount:", "principal:", "principalSet:")
#: Maximum number of phrases in a row. Further phrases are counted.
SHOWN: Final = 12


def verdict(report: ReviewReport, quote: Quote = cut) -> str:
    """Return the verdict in one line: obstacles, jobs, costs, deleted data, new access."""
    parts = [_failure(report)] if report.outcome is not ReviewOutcome.CLEAN else []
    if report.nothing:
        return f"{parts[0][0].upper()}{parts[0][1:]}." if parts else "Nothing changes."
    if images := _unbuilt_images(report):
        parts.append(
            f"{counted(len(images), 'image')} not built: {first(list(map(quote, images)))}"
        )
    parts.append(_jobs(report))
    if report.submitted:
        parts.append(_cost(report))
    if images := report.images:
        changed = [f"{quote(e.name)}: {' → '.join(map(quote, image_versions(e)))}" for e in images]
        parts.append(f"image {first(changed)}")
    parts += _cancelled_and_deferred(report)
    if uploads := sum(model.action in ("upload", "replace") for model in report.models):
        parts.append(f"{counted(uploads, 'model version')} uploaded or adopted")
    parts += _traffic(report, quote)
    for in_words in (expenses.costs_in_words, expenses.ends_in_words):
        if words := in_words(report.schedules, quote):
            parts.append(first(words))
    queries = expenses.queried(report.snapshots)
    if queries:
        parts.append(first([expenses.query_cost(query, quote) for query in queries]))
    if report.reservations:
        parts.append(expenses.reservations_cost(report.reservations, quote))
    if report.gained or report.lost:
        parts.append(f"{counted(len(report.gained), 'grant')} gained, {len(report.lost)} lost")
    parts += [
        f"{what}: {first(names)}" for what, names in _repeated_and_dropped(report, quote) if names
    ]
    destroyed = sum(not change.refused for change in report.destroyed)
    parts.append(f"{counted(destroyed, 'resource') if destroyed else 'nothing'} destroyed")
    named: dict[str, list[str]] = {}
    for kind, findings in sorted(report.risks.items(), key=lambda e: e[0].danger != "destroys"):
        if kind.headline and findings:
            names = [kind.name(finding, quote) for finding in findings]
            named.setdefault(kind.headline, []).extend(names)
    parts += [f"{headline}: {first(names)}" for headline, names in named.items()]
    if report.packs and not report.forbidding:
        parts.append(counted(len(report.violations), "policy warning"))
    left = len(parts) - PARTS
    text = "; ".join([*parts[:PARTS], *([f"and {left} more, below"] if left > 0 else [])])
    return text[0].upper() + text[1:] + "."


def _jobs(report: ReviewReport) -> str:
    stated = report.outcome is ReviewOutcome.FAILED and _beside_the_plan(report)
    refused = Counter(
        job.action for job in report.jobs if job.refused and not (stated and job.same_request)
    )
    actions = Counter(job.action for job in report.jobs)
    leaving = [job for job in report.jobs if job.action == "cancel" and not job.refused]
    continuing = sum(job.continues for job in leaving)
    cancelled = sum(job.cancels for job in leaving)
    ended = len(leaving) - continuing - cancelled
    counts = [
        (refused["replace"], "that `up` refuses to replace"),
        (refused["cancel"], "that `up` refuses to remove"),
        (actions["submit"], "submitted"),
        (actions["adopt"], "adopted"),
        (sum(job.action == "replace" and job.submits for job in report.jobs), "replaced"),
        (cancelled, "cancelled"),
        (continuing, "left running outside the stack"),
        (ended, "removed from the stack (already ended)"),
    ]
    phrases = [f"{counted(number, 'job')} {word}" for number, word in counts if number]
    return ", ".join(phrases) or "no job submitted"


def _failure(report: ReviewReport) -> str:
    violations = counted(len(report.forbidding), "policy violation")
    return {
        ReviewOutcome.FAILED: _beside_the_plan(report) or "the preview failed",
        ReviewOutcome.FORBIDDEN: f"forbidden by {violations}" if report.forbidding else REFUSED,
        ReviewOutcome.OVER_LIMIT: "the environment's limits are exceeded",
        ReviewOutcome.DIFFERENT: "the plan differs from the approved plan",
    }[report.outcome]


def _beside_the_plan(report: ReviewReport) -> str:
    """Return problems that forbid a plan with a successful preview; empty if the preview failed."""
    counts = [
        (sum(problem.rule in rules for problem in report.problems), noun, verb)
        for rules, noun, verb in BESIDE_THE_PLAN
    ]
    if report.errors or sum(count for count, *_ in counts) < len(report.problems):
        return ""
    return ", ".join(f"{counted(count, noun)} {verb}" for count, noun, verb in counts if count)


def is_partial(report: ReviewReport) -> bool:
    """Return True if the preview failed, so that the report may be incomplete."""
    beside = {rule for rules, *_ in BESIDE_THE_PLAN for rule in rules} | {ACCEPTED_LOSS}
    if report.problems and not report.errors:
        return any(problem.rule not in beside for problem in report.problems)
    failed = report.outcome in (ReviewOutcome.FAILED, ReviewOutcome.OVER_LIMIT)
    return failed or bool(report.errors)


def _unbuilt_images(report: ReviewReport) -> list[str]:
    unbuilt = (uri for uri, _ in report.new_images if uri.endswith(f"@{PLACEHOLDER}"))
    return sorted(set(map(image_name, unbuilt)))


def answers(report: ReviewReport, quote: Quote) -> dict[Topic, list[str]]:
    """Return the phrases of all twelve topics in order. In each topic, risks come last."""
    gains = ((grants.short_member(grant), grants.right(grant, quote)) for grant in report.gained)
    repeated = _repeated_and_dropped(report, quote)
    replaced = [f"job {quote(job.name)}" for job in report.submitted if job.action == "replace"]
    replaced += [quote(change.name) for change in report.destroyed if change.replaced]
    readers = grants.people_first(report.access_gained)
    bound = "resources, protection, limits, policies, policy levels or the outcome change"
    phrases: dict[Topic, list[str]] = {
        Topic.RUNS: [*_runs(report, quote)],
        Topic.COSTS: [*_costs(report, quote)],
        Topic.RIGHTS: [f"{quote(member)}: {right}" for member, right in gains],
        Topic.LOST: [f"{what}: {name}" for what, names in repeated for name in names],
        Topic.PUBLIC: [],
        Topic.STOPS: [*_stops(report, quote)],
        Topic.REPLACED: replaced,
        Topic.LIMITS: [],
        Topic.POLICIES: [
            *([] if report.packs else ["no policy pack checked the plan"]),
            *(
                f"{'forbidden by' if violation.is_mandatory else 'warning of'} "
                f"{quote(violation.policy)} for {quote(violation.urn.rpartition('::')[2])}"
                for violation in report.violations
            ),
        ],
        Topic.READABLE: [
            f"{quote(grants.short_member(reader))} {grants.reach(reader, quote)}"
            for reader in readers
        ],
        Topic.UNSEEN: [*_unseen(report, quote)],
        Topic.BINDS: [f"{quote(report.digest[:12])}; an approval becomes void if {bound}"],
    }
    for kind, findings in report.risks.items():
        if kind.question:
            phrases[Topic(kind.question)] += [kind.phrase(finding, quote) for finding in findings]
    return phrases


def _repeated_and_dropped(report: ReviewReport, quote: Quote) -> list[tuple[str, list[str]]]:
    return [
        ("due start times without a submission", expenses.drops_in_words(report.schedules, quote)),
        ("output written into the folder of an earlier job", repeats_in_words(report.jobs, quote)),
    ]


def _runs(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for job in report.jobs:
        if job.submits or job.action == "defer":
            machines = " and ".join(quote(machine) for machine in job.machines)
            if job.machines_before not in ((), job.machines):
                machines = f"{' and '.join(map(quote, job.machines_before))} → {machines}"
            if job.strategy_before not in ("", job.strategy):
                machines += f", {quote(job.strategy_before)} → {quote(job.strategy)}"
            later = ", after the end of the running job" if job.action == "defer" else ""
            yield f"{quote(job.name)} on {machines}{later}"
    for schedule in report.schedules:
        if schedule.action in ("begin", "change"):
            yield f"start times of schedule {quote(schedule.name)}: {quote(schedule.words)}"
    yield from _traffic(report, quote)


def _traffic(report: ReviewReport, quote: Quote) -> list[str]:
    return [
        f"traffic of {quote(endpoint.name)}: {quote(serving.split_change(endpoint))}"
        for endpoint in report.endpoints
        if endpoint.before != endpoint.after and endpoint.action != "delete"
    ]


def _costs(report: ReviewReport, quote: Quote) -> Iterator[str]:
    if report.submitted:
        yield f"{_cost(report)}{_by_service(report)}"
    if deferred := [job for job in report.jobs if job.action == "defer"]:
        prices = ", ".join(usd(job.cost.worst_case) for job in deferred[:NAMED])
        yield f"jobs submitted later: {prices}"
    if report.reservations:
        yield expenses.reservations_cost(report.reservations, quote)
    yield from expenses.costs_in_words(report.schedules, quote)
    for query in expenses.queried(report.snapshots):
        yield expenses.query_cost(query, quote)
    for change in report.watching:
        if change.kind == "budget" and change.action != "delete":
            yield f"budget {quote(change.name)} sends mail at {quote(change.when)}; jobs continue"
    for endpoint in report.endpoints:
        if endpoint.cost_before != endpoint.cost:
            yield f"endpoint {quote(endpoint.name)} (also when idle): {serving.cost_text(endpoint)}"


def _stops(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for job in report.jobs:
        if job.cancels:
            so_far = " (current state unknown)" if job.now is None else ""
            if job.now and job.now.seconds:
                so_far = f" after {format_duration(job.now.seconds)}, {usd(job.now.cost)} so far"
            yield f"{quote(job.name)}{so_far}"
    yield from expenses.ends_in_words(report.schedules, quote)


def _unseen(report: ReviewReport, quote: Quote) -> Iterator[str]:
    if is_partial(report):
        yield "steps after the preview's error"
    if report.not_observed:
        yield f"current states of jobs: {quote(report.not_observed)}"
    for model in report.models:
        if model.unanswered and model.action in ("upload", "replace"):
            yield f"run {quote(model.run)} of model {quote(model.model)}: {quote(model.unanswered)}"
    for snapshot in report.snapshots:
        if expenses.NOT_ESTIMATED in snapshot.told:
            yield f"snapshot {quote(snapshot.name)}: {quote(snapshot.told)}"
    for type_ in report.unjudged:
        yield f"access that a {quote(type_)} grants"
    if report.is_offline:
        yield "deployed resources, because the preview started from an empty state"


def _cost(report: ReviewReport) -> str:
    missing, old = report.unpriced, [job.cost_before for job in report.submitted if job.cost_before]
    prices = [cost.worst_case for cost in old]
    was = usd(None if None in prices else math.fsum(price or 0 for price in prices))
    total = usd(report.worst_case)
    if len(missing) == len(report.submitted):
        return "price unknown" + (f", at most {was} before" if old and None not in prices else "")
    more = f" and {counted(len(missing), 'job')} without a price" if missing else ""
    return f"at most {f'{was} → ' if old and was != total else ''}{total}{more}"


def _by_service(report: ReviewReport) -> str:
    """Return the jobs' service, and the cost on the other service if it supports all jobs."""
    offers = [job.offers for job in report.submitted]
    services = {own.backend for own, _ in offers}
    if len(services) > 1 or report.unpriced:
        return ""
    own = f" on {SERVICES[services.pop()]}"
    prices = [other.cost and other.cost.worst_case for _, other in offers]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return own
    return f"{own}, {usd(math.fsum(known))} on {SERVICES[offers[0][1].backend]}"


def _cancelled_and_deferred(report: ReviewReport) -> Iterator[str]:
    if thrown := [job.now for job in report.jobs if job.cancels and job.now and job.now.seconds]:
        longest = format_duration(max(job.seconds for job in thrown))
        after = longest if len(thrown) == 1 else f"up to {longest}"
        cost = usd(math.fsum(job.cost or 0 for job in thrown))
        yield f"{counted(len(thrown), 'running job')} cancelled after {after} ({cost} so far)"
    if prices := [job.cost.worst_case for job in report.jobs if job.action == "defer"]:
        known = usd(math.fsum(price or 0 for price in prices))
        cost = "price unknown" if None in prices else f"at most {known}"
        yield f"{counted(len(prices), 'job')} submitted after the end of the running job ({cost})"


def totals(report: ReviewReport) -> str:
    """Return the numbers of other resources that the plan creates, updates, …, as text."""
    counts = Counter(change.op for change in report.changes)
    for folder in report.folders:
        added, changed, removed = map(len, (folder.added, folder.changed, folder.removed))
        counts += Counter(create=added, replace=changed, delete=removed)
    words = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
    words["forget"] = "removed from the stack only"
    order = [*words, *(op for op in sorted(counts) if op not in words)]
    parts = [f"{counts[op]} {words.get(op, op)}" for op in order if counts[op]]
    return ", ".join(parts) or "none"


def subject(report: ReviewReport, quote: Quote) -> str:
    """Return the title after "Review of stack": the name, and a note on a first deployment."""
    name = quote(report.stack)
    return f"{name}: first deployment" if report.is_first else name


def readiness(report: ReviewReport) -> tuple[str, str]:
    """Return a short verdict on the deployment, and its reason or the next step."""
    images = _unbuilt_images(report)
    offline = "the preview started from an empty state, so every resource looks new"
    if report.outcome is not ReviewOutcome.CLEAN:
        return "Not ready", _failure(report)
    if images:
        count = f"{counted(len(images), 'image')} not built"
        return "Not ready", f"{count}; {offline}" if report.is_offline else count
    if report.is_offline:
        return "Not compared with the cloud", offline
    if report.nothing:
        return "Ready", "nothing to deploy"
    return "Ready", "run the commands below, or merge if CI deploys"


def commands(report: ReviewReport) -> list[str]:
    """Return the commands that deploy the stack."""
    stack = report.stack
    if report.outcome is not ReviewOutcome.CLEAN:
        return []
    if images := _unbuilt_images(report):
        return [
            *(f"vt images build {name} --stack {stack}" for name in images),
            f"vt review --stack {stack}",
        ]
    if report.is_offline or report.nothing:
        return []
    preflight = [] if report.preflight else [f"vt preflight --stack {stack}"]
    return [*preflight, f"vt up --stack {stack}"]


def without_row(report: ReviewReport, quote: Quote) -> str:
    """Return a sentence with the headings of all topics without phrases."""
    heads = [topic.head for topic, phrases in answers(report, quote).items() if not phrases]
    partial = "Unknown, because the preview failed"
    words = partial if is_partial(report) else "No entries for"
    return f"{words}: {', '.join(heads)}." if heads else ""


def rows(report: ReviewReport, quote: Quote) -> list[Row]:
    """Return rows for created resources and for topics that are not empty: heading, lines."""
    counts = Counter(map(_word, report.created))
    created = ", ".join(counted(number, word) for word, number in counts.items())
    summary = [Row((("Created",), (created,)))] if created else []
    for topic, phrases in answers(report, quote).items():
        for head, lines in _lines(report, topic, phrases, quote).items():
            if lines:
                summary.append(Row(((head,), shortened(lines, SHOWN)), topic.danger))
    return summary


def _lines(
    report: ReviewReport, topic: Topic, phrases: list[str], quote: Quote
) -> dict[str, list[str]]:
    """Return the lines of a topic by heading. Grants have a line for each principal."""
    if topic == Topic.RIGHTS:
        machines = [grant for grant in report.gained if grant.member.startswith(_MACHINES)]
        people = [grant for grant in report.gained if not grant.member.startswith(_MACHINES)]
        return {
            PEOPLE: _by_principal(people, grants.right, quote),
            MACHINES: _by_principal(machines, grants.right, quote),
            "Other rights": phrases[len(report.gained) :],
        }
    if topic == Topic.READABLE and report.access_gained:
        readers = grants.people_first(report.access_gained)
        lines = _by_principal(readers, grants.reach, quote)
        return {topic.head: [*lines, *phrases[len(readers) :]]}
    return {topic.head: ["; ".join(shortened(phrases, SHOWN))] if phrases else []}


def _word(type_: str) -> str:
    if resource_types.iam_kind(type_):
        return "grant"
    spaced = re.sub("([A-Z])", r" \1", type_.rpartition(":")[2]).strip().lower()
    return resource_types.find(type_).word or ("API" if spaced == "service" else spaced)


def _by_principal(
    rights: Iterable[Any], to_text: Callable[[Any, Quote], str], quote: Quote
) -> list[str]:
    by_principal: dict[str, list[str]] = {}
    for right in rights:
        principal = quote(grants.short_member(right))
        by_principal.setdefault(principal, []).append(to_text(right, quote))
    return [f"{principal}: {', '.join(what)}" for principal, what in by_principal.items()]
