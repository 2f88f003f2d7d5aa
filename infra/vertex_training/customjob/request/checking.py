"""Check a request against the rules, and find the place of each finding in the file."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob import rules
from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind
from vertex_training.customjob.request import hints
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.customjob.rules import Finding, Job
from vertex_training.errors import Location, Path, Problem, did_you_mean, nearest
from vertex_training.located_yaml.document import MAX_PROBLEMS, Document
from vertex_training.secret_rules.redaction import redacted

#: Longest hint in characters. The longest one of a rule names all regions.
MAX_HINT: Final = 700
#: What to write where the field with the CustomJobSpec is missing.
SPEC_HINTS: Final = {
    "jobSpec": "beside displayName and labels, REST's form has everything else in jobSpec",
    "trialJobSpec": "it says what each trial runs, as the jobSpec of a CustomJob",
}


def findings(
    parsed: Document, job: Job, kind: JobKind = CUSTOM_JOB, left_out: Set[Path] = frozenset()
) -> Iterator[Problem]:
    """Findings of the rules in ``job``, which was read from ``parsed``; at most ``MAX_PROBLEMS``.

    Reports nothing at a path that could not be read: a misspelt field is one mistake, and not a
    missing field as well. A missing field whose path is in ``left_out`` is reported at its key.
    """
    return itertools.islice(_findings(parsed, job, kind, left_out), MAX_PROBLEMS)


def _findings(parsed: Document, job: Job, kind: JobKind, left_out: Set[Path]) -> Iterator[Problem]:
    has_spec = "jobSpec" in job.request
    if not has_spec and not any(_may_hide_spec(path, kind) for path in job.unreadable):
        location, what = parsed.location(()), f"{kind.spec} is missing"
        yield Problem(what, "", SPEC_HINTS[kind.spec], location=location, rule="job-spec")
    if not has_spec and kind is CUSTOM_JOB:
        return
    gcloud_form = kind is CUSTOM_JOB and not any(
        to_camel_case(key) == "jobSpec" for key in parsed.root.content
    )
    for rule in rules.RULES:
        if rule.check is None or not (has_spec or rule.subject in rules.OF_TUNING):
            continue
        for finding in rule.check(job):
            if _is_unreadable(finding, job.unreadable):
                continue
            path = kind.path_in_message(finding.path)
            if gcloud_form and path[:1] == ("jobSpec",):
                path = path[1:]
            written = path_in_file(parsed, path)
            location, what = parsed.location(written), finding.what
            for empty in left_out:
                if empty[:-1] == written and to_camel_case(str(empty[-1])) == finding.missing:
                    path, what = empty, "has no value"
                    location = parsed.location(path, key=True)
            # It may quote a value of any length.
            hint = redacted(finding.hint)[:MAX_HINT]
            value = redacted(finding.value)
            level = finding.level or rule.level
            mend = finding.mend and dataclasses.replace(finding.mend, at=written)
            yield Problem(what, value, hint, path, location, rule.id, level, mend)


def _may_hide_spec(path: Path, kind: JobKind) -> bool:
    """Return whether the spec may be the unreadable part at ``path``."""
    return kind is CUSTOM_JOB or len(path) == 1 or path[:1] == (CUSTOM_JOB.spec,)


def _is_unreadable(finding: Finding, unreadable: tuple[Path, ...]) -> bool:
    place = (*finding.path, finding.missing) if finding.missing else finding.path
    for path in unreadable:
        shared = min(len(path), len(place))
        if path[:shared] == place[:shared]:
            return True
        if (
            finding.missing
            and path[:-1] == finding.path
            and _may_stand_for(str(path[-1]), finding.missing)
        ):
            return True
    return False


def _may_stand_for(field: str, missing: str) -> bool:
    """Return whether an unreadable ``field`` is the missing one misspelled, or a field of it."""
    inside = (
        hints.messages()[row["message"]]
        for fields in hints.messages().values()
        if "message" in (row := fields.get(missing, {}))
    )
    return nearest(field, [missing]) is not None or any(field in fields for fields in inside)


def path_in_file(parsed: Document, path: Path) -> Path:
    """``path`` with the keys as the file spells them: they may be snake_case."""
    value, written = parsed.root, list[str | int]()
    for part in path:
        content = value.content
        if part == 0 and not isinstance(content, list):
            continue  # one item, written without a list
        if isinstance(content, dict):
            key = next((k for k in content if part in (k, to_camel_case(k))), None)
            if key is None:
                break
            written.append(key)
            value = content[key]
        elif isinstance(content, list) and isinstance(part, int):
            written.append(part)
            value = content[part]
        else:
            break
    return tuple(written)


COMMENT: Final = re.compile(
    r"(?P<before>.*?)(?:^|\s)#\s*vt:\s*ignore(?:\[(?P<rule>[^\]]*)\])?(?P<why>.*)"
)
RULE: Final = "ignore"
#: Fewest characters of a reason.
SHORTEST: Final = 8
#: Rules that keep others safe.
KEPT: Final = frozenset(("service-account", "label-reserved", "job-region"))
#: Rules that a file may ignore: those about a message that could be read.
IGNORABLE: Final = frozenset(
    rule.id for rule in rules.RULES if rule.subject not in rules.OF_A_STACK and rule.id not in KEPT
)
LENIENT: Final = frozenset(("no-value", "lone-value", "pool-list"))


@dataclass(frozen=True, slots=True)
class IgnoreComment:
    """A comment that ignores a rule on ``line``."""

    rule: str
    reason: str
    line: int
    location: Location


def comments_in(text: str, file: str) -> tuple[list[IgnoreComment], list[Problem]]:
    """The comments of a file, and what is wrong with some of them."""
    found, problems = list[IgnoreComment](), list[Problem]()
    for number, line in enumerate(text.splitlines(), start=1):
        if "vt:" not in line or not (match := COMMENT.match(line)):
            continue
        location = Location(file, number, match.end("before") + 1)
        name, reason = (match["rule"] or "").strip(), match["why"].strip()
        if problem := _mistake(name, reason):
            what, hint = problem
            problems.append(Problem(what, name, hint, location=location, rule=RULE))
        else:
            alone = not match["before"].strip()
            found.append(IgnoreComment(name, reason, number + alone, location))
    return found, problems[:MAX_PROBLEMS]


def apply(
    problems: Iterable[Problem], text: str, file: str
) -> tuple[list[Problem], tuple[Problem, ...]]:
    """All problems, with what is ignored as notes; and those notes alone."""
    if "vt:" not in text:
        return list(problems), ()
    comments, mistakes = comments_in(text, file)
    found, ignored, used = list[Problem](), list[Problem](), set[IgnoreComment]()
    for problem in problems:
        comment = next((c for c in comments if _hides(c, problem)), None)
        if comment is None:
            found.append(problem)
            continue
        used.add(comment)
        what = f"{problem.what} (ignored: {comment.reason})"
        ignored.append(dataclasses.replace(problem, what=what, hint="", level="note"))
    return [*found, *mistakes, *_unused(comments, used), *ignored], tuple(ignored)


def _hides(comment: IgnoreComment, problem: Problem) -> bool:
    return comment.rule == problem.rule and comment.line == problem.location.line


def _mistake(name: str, reason: str) -> tuple[str, str] | None:
    form = "# vt: ignore[image-pinned] rebuilt by hand each night"
    known = IGNORABLE | LENIENT
    if not name:
        return "names no rule", form
    if name not in known:
        if any(rule.id == name for rule in rules.ALL):
            return "this rule cannot be ignored in a job file", "correct what it reports"
        return "no such rule", did_you_mean(name, sorted(known))
    if len(reason) < SHORTEST:
        return "gives no reason", form
    return None


def _unused(comments: list[IgnoreComment], used: set[IgnoreComment]) -> Iterator[Problem]:
    for comment in comments:
        if comment not in used:
            yield Problem(
                "ignores nothing: the rule finds nothing here", comment.rule, "remove it",
                location=comment.location, rule=RULE, level="note",
            )  # fmt: skip
