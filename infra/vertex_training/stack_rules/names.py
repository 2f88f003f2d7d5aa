"""Names that Google Cloud would refuse, and keys that name what the stack does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training import naming
from vertex_training.customjob.protocol.ports import JOB_LABELS
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan import stack_grants
from vertex_training.settings import renames
from vertex_training.settings.model import SECTIONS, Settings

#: Labels that a stack file and a job file may give; the program's own come to them.
MOST_OWN_LABELS: Final = naming.MOST_LABELS - len(JOB_LABELS)
#: Section -> keys of what the stack makes there by itself.
OWN: Final = {
    ("buckets",): (naming.STAGING, naming.CONTROL),
    ("serviceAccounts",): (naming.IMAGE_BUILD,),
    ("network", "allow"): ("workers",),
}


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    yield from _buckets(settings)
    names = settings.names
    for key in settings.service_accounts:
        name = names.account_id(key)
        if not naming.ACCOUNT_ID.match(name):
            what = "makes an account id that is not 6 to 30 characters long"
            yield Problem(what, name, "choose another name", ("serviceAccounts", key))
    yield from _labels(settings)
    for path, members in stack_grants.member_lists(settings):
        for index, member in enumerate(members):
            if not naming.is_member(member):
                kinds = ", ".join(naming.MEMBER_KINDS[:3])
                hint = f"write {kinds} or a principal of workload identity"
                yield Problem("not an IAM member", member, hint, (*path, index))
    sections = {"buckets": settings.buckets, "secrets": settings.secrets}
    for section, entries in sections.items():
        for key, entry in entries.items():
            yield from _own_labels(entry.labels, (section, key, "labels"))
    yield from _image_builds(settings)
    yield from _unknown_keys(settings)
    yield from _jobs_of_one_name(settings)
    yield from _former_names(settings)


def _jobs_of_one_name(settings: Settings) -> Iterator[Problem]:
    """A job and a tuning job of one name would be one to every command and report."""
    taken: dict[str, str] = {}
    for key, job in settings.jobs.items():
        taken |= dict.fromkeys((key, renames.first_key(key, job)), key)
    for key, tuning in settings.tuning.items():
        names = (key, renames.first_key(key, tuning))
        if job := next((taken[name] for name in names if name in taken), ""):
            what, hint = f"job '{job}' has this name", "names of jobs and tuning jobs differ"
            yield Problem(what, key, hint, ("tuning", key))


def _labels(settings: Settings) -> Iterator[Problem]:
    for key, value in settings.labels.items():
        path = ("labels", key)
        if naming.is_own_label(key):
            yield Problem("the stack sets this label itself", value, "remove it", path)
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=path)
    hint = f"at most {MOST_OWN_LABELS}: a resource has {naming.MOST_LABELS}, some are the stack's"
    if (count := len(settings.labels)) > MOST_OWN_LABELS:
        yield Problem("too many labels", str(count), hint, ("labels",))
        return
    for team in settings.teams:
        if (count := len(settings.labels_of(team))) > MOST_OWN_LABELS:
            what = "too many labels, with those of the stack"
            yield Problem(what, str(count), hint, ("teams", team, "labels"))


def _own_labels(labels: Mapping[str, str], path: Path) -> Iterator[Problem]:
    for key, value in labels.items():
        if naming.is_own_label(key):
            yield Problem("the stack sets this label itself", value, "remove it", (*path, key))
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=(*path, key))


def _image_builds(settings: Settings) -> Iterator[Problem]:
    """The stack makes an account of its own where it builds images."""
    if not settings.builds_images:
        return
    if naming.IMAGE_BUILD in settings.service_accounts:
        path = ("serviceAccounts", naming.IMAGE_BUILD)
        yield Problem("the stack makes this account itself", naming.IMAGE_BUILD, "rename it", path)
    name = settings.names.account_id(naming.IMAGE_BUILD)
    if not naming.ACCOUNT_ID.match(name):
        what = "the account that builds images would have an id longer than 30 characters"
        yield Problem(what, name, "shorten the stack's name", ("images",))


def _buckets(settings: Settings) -> Iterator[Problem]:
    names = settings.names
    for key in settings.buckets:
        path = ("buckets", key)
        if key in (naming.STAGING, naming.CONTROL):
            yield Problem("the stack makes this bucket itself", key, "rename it", path)
        name = names.bucket(key)
        if not naming.BUCKET.match(name):
            yield Problem("makes a bucket name longer than 63", name, "shorten it", path)
        elif naming.BUCKET_GOOGLE.match(name):
            what = "makes a bucket name that begins with goog or contains google: it is refused"
            yield Problem(what, name, "choose another name", path)


def _unknown_keys(settings: Settings) -> Iterator[Problem]:
    """Keys that point at something the stack does not have."""
    for key, account in settings.service_accounts.items():
        for field, wanted, known in (
            ("reads", account.reads, settings.buckets),
            ("writes", account.writes, settings.buckets),
            ("secrets", account.secrets, settings.secrets),
        ):
            kind = "secret" if field == "secrets" else "bucket"
            for index, name in enumerate(wanted):
                path = ("serviceAccounts", key, field, index)
                if name in (naming.STAGING, naming.CONTROL) and kind == "bucket":
                    hint = "jobs get read access to packages by themselves, and none to records"
                    yield Problem("is a bucket of the stack's own", name, hint, path)
                elif name not in known:
                    what = f"this stack has no such {kind}"
                    yield Problem(what, name, did_you_mean(name, known), path)


def _former_names(settings: Settings) -> Iterator[Problem]:
    """``formerly``: every name that something was created under belongs to one entry."""
    for section in SECTIONS:
        keys = renames.first_keys(settings, section)
        counted = Counter(keys.values())
        for key, entry in settings.entries(section).items():
            former, path = entry.formerly, (*section, key, "formerly")
            if former is None:
                continue
            if former in OWN.get(section, ()):
                yield Problem("is what the stack makes itself", former, "remove it", path)
            elif former == key:
                yield Problem("is its name still", former, "remove it", path)
            elif getattr(entry, "existing", None):
                what = "the stack does not make what exists: its name is its owner's to change"
                yield Problem(what, former, "remove it", path)
            elif counted[former] > 1:
                other = next(k for k, first in keys.items() if first == former and k != key)
                what = f"is the name that {other} has in the cloud"
                hint = f"give {other} another key; or, if it had another name, its own formerly"
                yield Problem(what, former, hint, path)
