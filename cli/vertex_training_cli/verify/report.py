"""What leaves the machine: the page, its JSON, the records, and an archive of them; all redacted.

Redacted is what ``vt`` redacts everywhere (tokens, keys, values marked secret), every e-mail
address but those of service accounts, domains of members, billing accounts, ids and numbers of
projects, and this machine's folders.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from vertex_training_cli.engine.values import redact
from vertex_training_cli.review.escaping import code
from vertex_training_cli.verify.comparison import VERSION, Comparison
from vertex_training_cli.verify.observations import Observations

_MAIL: Final = re.compile(
    r"[A-Za-z0-9._%+'-]{1,64}@(?![A-Za-z0-9.-]{0,200}gserviceaccount\.com)"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}"
)
_DOMAIN: Final = re.compile(r"\bdomain:[A-Za-z0-9.-]{1,253}")
_BILLING: Final = re.compile(r"\b[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}\b")
#: Where a project is named, by its id or number; a project of Google's own is no secret.
_PROJECT: Final = re.compile(
    r"""(?:\bprojects/|\bdocker\.pkg\.dev/|"(?:\w+P|p)roject(?:Id|Number)?":\s")"""
    r"""((?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]{6,19})(?=[/"\s:]|$)"""
    r"""|@((?!gcp-sa-)[a-z][a-z0-9-]{4,28}[a-z0-9])\.iam\.gserviceaccount\.com""",
    re.MULTILINE,
)
_GOOGLES: Final = "vertex-ai"
#: What stands for an e-mail address and the like.
ACCOUNT: Final = "[account]"


def redactor(own: Mapping[str, str]) -> Callable[[Any], str]:
    """Makes text of a document: redacted, and each key of ``own`` replaced by its value.

    Other projects that any of the documents named until then are ``PROJECT-2`` and so on.
    """
    known = {word: stands for word, stands in own.items() if word}
    others = itertools.count(2)

    def text(document: Any) -> str:
        found = json.dumps(redact(document), indent=2, ensure_ascii=False)
        for pattern in (_MAIL, _BILLING):
            found = pattern.sub(ACCOUNT, found)
        found = _DOMAIN.sub(f"domain:{ACCOUNT}", found)
        for match in _PROJECT.finditer(found):
            name = match[1] or match[2]
            if name != _GOOGLES and name not in known:
                known[name] = f"PROJECT-{next(others)}"
        words = sorted(known, key=len, reverse=True)
        names = re.compile("|".join(map(re.escape, words)))
        return names.sub(lambda match: known[match[0]], found) if words else found

    return text


def document(stack: str, comparison: Comparison, ended: str) -> dict[str, Any]:
    """The page for programs. ``ended``: why the run ended before its last step; empty if not."""
    return {
        "version": VERSION,
        "stack": stack,
        "ended": ended,
        "differences": [dataclasses.asdict(each) for each in comparison.differences],
        "notCompared": list(comparison.not_compared),
    }


def markdown(found: Mapping[str, Any], observed: Observations) -> str:
    """The page for people."""
    differences = found["differences"]
    count = "1 difference" if len(differences) == 1 else f"{len(differences) or 'no'} differences"
    lines = ["# Where the cloud differed from the rehearsal", ""]
    lines += [f"Stack {code(found['stack'])}: **{count}**.", ""]
    if found["ended"]:
        lines += [f"The run ended early: {code(found['ended'], 2000)}", ""]
    for number, each in enumerate(differences, 1):
        lines += [f"## {number}. {each['step']}: {code(each['subject'])}", ""]
        lines += [*(f"- {code(detail, 4000)}" for detail in each["details"]), ""]
    lines += ["| step | seconds |", "|---|---|"]
    lines += [
        f"| {step} | {subjects.get('result', {}).get('seconds', '')} |"
        for step, subjects in observed.items()
    ]
    if found["notCompared"]:
        lines += ["", "Only one of both runs had these, so nothing is said of them:", ""]
        lines += [f"- {code(each)}" for each in found["notCompared"]]
    return "\n".join([*lines, ""])


def write(
    folder: Path,
    stack: str,
    comparison: Comparison,
    observed: Observations,
    records: Mapping[str, Any],
    *,
    ended: str,
    as_text: Callable[[Any], str],
) -> Path:
    """Write all files into ``folder``, and the archive beside it, which is returned."""
    found: dict[str, Any] = json.loads(as_text(document(stack, comparison, ended)))
    files = {
        "differences.md": markdown(found, observed),
        "differences.json": json.dumps(found, indent=2, ensure_ascii=False),
        "observations.json": as_text({"version": VERSION, "steps": observed}),
        **{f"records/{name}.json": as_text(each) for name, each in records.items()},
    }
    archive = folder.with_name(f"{folder.name}.tar.gz")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text.rstrip()}\n", encoding="utf-8")
    with tarfile.open(archive, "w:gz") as out:
        for name in files:
            out.add(folder / name, f"{folder.name}/{name}", filter=_nobodys)
    return archive


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the user's name."""
    entry.uname = entry.gname = ""
    entry.uid = entry.gid = 0
    return entry
