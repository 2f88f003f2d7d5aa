"""Checks a request with the rules, and adds the place in the file to each finding."""

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
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.errors import Location, Path, Problem, did_you_mean, nearest
from vertex_training.located_yaml.document import MAX_PROBLEMS, Document
from vertex_training.secret_rules.redaction import redacted

#: Maximum length of a hint in characters. The longest hint of a rule lists all regions.
MAX_HINT: Final = 700
#: Missing spec -> hint.
SPEC_HINTS: Final = {
    "jobSpec": "add jobSpec, and move all fields except displayName and labels into jobSpec",
    "trialJobSpec": "add trialJobSpec, which describes a trial like the jobSpec of a CustomJob",
}


def findings(
    parsed: Document, job: Job, kind: JobKind = CUSTOM_JOB, left_out: Set[Path] = frozenset()
) -> Iterator[Problem]:
    """Yield up to ``MAX_PROBLEMS`` findings about ``job``, which was read from ``parsed``.

    Skips unreadable paths: a misspelled field is one mistake, not also a missing field. A missing
    field whose path is in ``left_out`` is reported at its key.
    """
    return itertools.islice(_findings(parsed, job, kind, left_out), MAX_PROBLEMS)


def _findings(parsed: Document, job: Job, kind: JobKind, left_out: Set[Path]) -> Iterator[Problem]:
    has_spec = "jobSpec" in job.request
    # An unreadable part may be, or contain, the spec.
    may_have_spec = any(
        kind is CUSTOM_JOB or len(path) == 1 or path[:1] == (CUSTOM_JOB.spec,)
        for path in job.unreadable
    )
    if not has_spec and not may_have_spec:
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
                    path, what = empty, "the field has no value"
                    location = parsed.location(path, key=True)
            # A hint may quote a value of any length.
            hint = redacted(finding.hint)[:MAX_HINT]
            value = redacted(finding.value)
            level = finding.level or rule.level
            mend = finding.mend and dataclasses.replace(finding.mend, at=written)
            yield Problem(what, value, hint, path, location, rule.id, level, mend)


def _is_unreadable(finding: Finding, unreadable: tuple[Path, ...]) -> bool:
    place = (*finding.path, finding.missing) if finding.missing else finding.path
    for path in unreadable:
        shared = min(len(path), len(place))
        if path[:shared] == place[:shared]:
            return True
        is_beside = finding.missing and path[:-1] == finding.path
        if is_beside and _may_stand_for(str(path[-1]), finding.missing):
            return True
    return False


def _may_stand_for(field: str, missing: str) -> bool:
    """Return whether ``field`` may be a misspelling or a part of the missing field."""
    inside = (
        hints.messages()[row["message"]]
        for fields in hints.messages().values()
        if "message" in (row := fields.get(missing, {}))
    )
    return nearest(field, [missing]) is not None or any(field in fields for fields in inside)


def path_in_file(parsed: Document, path: Path) -> Path:
    """Return ``path`` with keys in the file's spelling, which may be snake_case."""
    value, written = parsed.root, list[str | int]()
    for part in path:
        content = value.content
        if part == 0 and not isinstance(content, list):
            continue  # a single item instead of a list
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
#: Minimum length of a reason in characters.
SHORTEST: Final = 8
#: Rules that protect other users, and that a file cannot ignore.
PROTECTIVE: Final = frozenset(("service-account", "label-reserved", "job-region"))
#: Rules that a file can ignore: rules about a readable message.
IGNORABLE: Final = frozenset(
    rule.id
    for rule in rules.RULES
    if rule.subject not in rules.OF_A_STACK and rule.id not in PROTECTIVE
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
    """Return the valid comments that ignore rules, and the problems of invalid comments."""
    comments, problems = list[IgnoreComment](), list[Problem]()
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
            comments.append(IgnoreComment(name, reason, number + alone, location))
    return comments, problems[:MAX_PROBLEMS]


def apply(
    problems: Iterable[Problem], text: str, file: str
) -> tuple[list[Problem], tuple[Problem, ...]]:
    """Return all problems, and again the ignored problems; these have the level ``note``."""
    if "vt:" not in text:
        return list(problems), ()
    comments, mistakes = comments_in(text, file)
    remaining, ignored, used = list[Problem](), list[Problem](), set[IgnoreComment]()
    for problem in problems:
        place = problem.rule, problem.location.line
        comment = next((c for c in comments if (c.rule, c.line) == place), None)
        if comment is None:
            remaining.append(problem)
            continue
        used.add(comment)
        what = f"{problem.what} (ignored: {comment.reason})"
        ignored.append(dataclasses.replace(problem, what=what, hint="", level="note"))
    what, hint = "the comment has no effect: the rule reports nothing here", "remove the comment"
    unused = [
        Problem(what, c.rule, hint, location=c.location, rule=RULE, level="note")
        for c in comments
        if c not in used
    ]
    return [*remaining, *mistakes, *unused, *ignored], tuple(ignored)


def _mistake(name: str, reason: str) -> tuple[str, str] | None:
    form = "# vt: ignore[image-pinned] rebuilt by hand each night"
    known = IGNORABLE | LENIENT
    if not name:
        return "the comment names no rule", f"write {form}"
    if name not in known:
        if any(rule.id == name for rule in rules.ALL):
            return "a job file cannot ignore this rule", "fix the mistake that the rule reports"
        return "this rule does not exist", did_you_mean(name, sorted(known))
    if len(reason) < SHORTEST:
        return "the comment has no reason", f"write {form}"
    return None
