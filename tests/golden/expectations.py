"""What a review must answer, from the script of a change: its files before and after.

Nothing here imports the code that makes reports. ``True`` stands for an answer, whatever it says,
``False`` for "nothing", and words for what the answer must name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.golden.changes import Change, edited

#: USD an hour of an n1-standard-4 in us-central1 with the fee: cloud.google.com/vertex-ai/pricing.
N1_STANDARD_4: Final = 0.2185
#: Of each region: a machine without a known price is "no price".
PRICED: Final = "n1-standard-4"
GROUP: Final = "group:ml-engineers@example.com"

Answer = bool | frozenset[str]


@dataclass(frozen=True)
class Files:
    """A stack file and its job files, read."""

    stack: Mapping[str, Any]
    jobs: Mapping[str, str]
    """Text of each job's file, by job."""
    program: str

    def section(self, name: str) -> Any:
        return self.stack.get(f"vertex-training:{name}") or {}

    @property
    def region(self) -> str:
        return self.stack["gcp:region"]


def before_and_after(stack: str, job: str, change: Change) -> tuple[Files, Files]:
    """The files before a change and after it."""
    others = change.job if change.all_jobs else ()
    return (
        Files(yaml.safe_load(stack)["config"], {"train": job, "check": job}, ""),
        Files(
            yaml.safe_load(edited(stack, change.stack))["config"],
            {"train": edited(job, change.job), "check": edited(job, others)},
            "".join(new for _, new in change.program),
        ),
    )


def expected(stack: str, job: str, change: Change) -> dict[str, Answer]:
    """Question -> what its answer must name."""
    old, new = before_and_after(stack, job, change)
    again, gone = _jobs(old, new)
    return {
        "what runs": frozenset(again),
        "what it can cost": _costs(old, new, again),
        "who gains a right": _gains(old, new),
        "what is lost": _lost(old, new),
        "what becomes public": _public(new),
        "what stops": frozenset(again | gone),
        "what is replaced": frozenset(again)
        | (_stores(new) if old.region != new.region else set()),
        "which limits are raised": _limits(old, new),
        "what policies say": _policies(new, change),
        "whose data becomes readable": _readable(old, new),
        "what was not looked at": change.exit_code in (1, 4),
        "what the digest binds": frozenset({"limits", "policies", "protection", "outcome"}),
    }


def _jobs(old: Files, new: Files) -> tuple[set[str], set[str]]:
    """Jobs that are submitted again, and those that leave the stack."""
    before, after = old.section("jobs"), new.section("jobs")
    again = {
        name
        for name in after
        if old.jobs[name] != new.jobs[name]
        or before[name] != after[name]
        or old.region != new.region
    }
    return again, set(before) - set(after)


def _costs(old: Files, new: Files, again: set[str]) -> Answer:
    words, total = set[str](), 0.0
    for name in again:
        pool = yaml.safe_load(re.sub(r"\$\{[^}]*\}", "x", new.jobs[name]))["workerPoolSpecs"][0]
        hours = int(re.findall(r"timeout: (\d+)s", new.jobs[name])[0]) / 3600
        if pool["machineSpec"]["machineType"] != PRICED or new.region != "us-central1":
            words.add("price" if new.region == "us-central1" else "$")
        else:
            total += pool["replicaCount"] * hours * N1_STANDARD_4
    words |= {f"${total:,.2f}"} if total else set()
    for name, kept in new.section("reservations").items():
        was = old.section("reservations").get(name)
        if was != kept:
            words |= {name, "a month", f"{was['count']} ", f"{kept['count']} x"}
    return frozenset(words)


def _accounts(files: Files) -> Iterator[tuple[str, str, str]]:
    """(account, verb, bucket or secret) of all accounts."""
    for name, account in files.section("serviceAccounts").items():
        for verb, key in (("reads", "reads"), ("writes", "writes"), ("reads", "secrets")):
            yield from ((name, verb, target) for target in account.get(key, ()))


def _members(files: Files) -> set[str]:
    return set(files.section("submitters") or ())


def _gains(old: Files, new: Files) -> Answer:
    words = {account for account, *_ in set(_accounts(new)) - set(_accounts(old))}
    words |= _members(new) - _members(old)
    words |= {"allUsers"} if "allUsers" in new.program else set()
    if new.section("network").get("mode") == "psc" != old.section("network").get("mode"):
        words |= {"gcp-sa-aiplatform"}
    return frozenset(words)


def _stores(files: Files) -> set[str]:
    """Resources with data of a stack: its buckets, its secrets, its repository."""
    buckets = {f"storage-{name}" for name in files.section("buckets")}
    return buckets | {f"secrets-{name}" for name in files.section("secrets")} | {"registry"}


def _lost(old: Files, new: Files) -> Answer:
    if old.region != new.region:
        own = {"storage-control", "storage-staging"}
        return frozenset(_stores(old) | own | {"made anew, empty"})
    words = set[str]()
    for name, was in old.section("buckets").items():
        now = new.section("buckets").get(name)
        if now is None:
            words |= {f"storage-{name}"} | ({"refused"} if was.get("protect") else {"destroyed"})
            continue
        worse = (
            now.get("softDeleteDays", 7) < was.get("softDeleteDays", 7),
            now.get("keepNoncurrentDays", 30) < was.get("keepNoncurrentDays", 30),
            now.get("deleteAfterDays", 9999) < was.get("deleteAfterDays", 9999),
            now.get("versioning", True) < was.get("versioning", True),
            now.get("forceDestroy", False) > was.get("forceDestroy", False),
            now.get("protect", False) < was.get("protect", False),
        )
        words |= {f"storage-{name}"} if any(worse) else set()
    was, now = old.section("registry"), new.section("registry")
    if now.get("keepVersions", 10) < was.get("keepVersions", 10):
        words |= {"registry-docker", "versions", "days"}
    words |= {
        name
        for name in old.section("serviceAccounts")
        if name not in new.section("serviceAccounts")
    }
    if old.section("network").get("mode") not in (None, new.section("network").get("mode")):
        words |= {"network-"}
    return frozenset(words)


def _public(new: Files) -> Answer:
    allowed = json.dumps(new.section("network"))
    words = {"raw"} if "allUsers" in new.program else set()
    return frozenset(words | ({"any address", "web"} if "0.0.0.0/0" in allowed else set()))


def _limits(old: Files, new: Files) -> Answer:
    words = set[str]()
    for key, was in old.section("limits").items():
        now = new.section("limits").get(key)
        if isinstance(was, int) and (now is None or now > was):
            words |= {key, f"${was:,.2f}", f"${now:,.2f}" if now else "no limit"}
        elif isinstance(was, list) and (now is None or set(now) - set(was)):
            words |= {key, *was, *(now or ["no limit"])}
    return frozenset(words)


def _policies(new: Files, change: Change) -> Answer:
    if "--policy-pack" not in change.flags:
        return frozenset({"no policy pack"})
    level = new.section("policyLevels").get("bucket-versioned", "mandatory")
    if level == "mandatory":
        return frozenset({"forbidden", "bucket-versioned", "storage-data"})
    return frozenset({"warning", "lowered", "bucket-versioned", f"mandatory` → `{level}"})


def _readable(old: Files, new: Files) -> Answer:
    """Data that accounts newly reach, submitters by acting as one, and everybody."""

    def reach(files: Files) -> set[tuple[str, str, str, str]]:
        return {(member, *each) for member in _members(files) for each in _accounts(files)}

    gained = reach(new) - reach(old)
    words = {word for member, _, _, target in gained for word in (member, target)}
    words |= {account for account, *_ in set(_accounts(new)) - set(_accounts(old))}
    return frozenset(words | ({"`allUsers` reads"} if "allUsers" in new.program else set()))
