"""Drift as Markdown, for an issue, and as JSON, for programs. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Final

from vertex_training_cli.drift.findings import BEYOND_UP, Drift, DriftOutcome, ResourceDifference
from vertex_training_cli.engine.values import redact
from vertex_training_cli.review.escaping import visible

#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1
#: GitHub refuses a longer text in an issue or a comment.
MAX_TEXT: Final = 65_536
#: Kept free for the rest of the text.
ROOM: Final = 4_096

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~@&:])")


def title(stack: str) -> str:
    """Return the title of the issue on a stack's drift."""
    return f"Drift in {stack}"


def markdown(drift: Drift) -> str:
    """Return the report, at most as long as GitHub allows."""
    if drift.outcome is DriftOutcome.CLEAN:
        return f"**{_text(drift.stack)}** is as declared.\n{_not_looked_at(drift)}"
    if drift.outcome is DriftOutcome.FAILED:
        quoted = "\n".join(f"> {_text(line)}" for error in drift.errors for line in _lines(error))
        return f"**{_text(drift.stack)}** could not be compared with the cloud:\n\n{quoted}\n"
    count = len(drift.differences)
    what = "1 resource differs" if count == 1 else f"{count} resources differ"
    text = f"In **{_text(drift.stack)}**, {what} from what is declared.\n"
    if drift.never_made:
        made = ", ".join(_text(name) for name in drift.never_made[:20])
        text += (
            f"\n**A deployment did not finish.** {len(drift.never_made)} declared resources were "
            f"never made: {made}. Deploy again: `make deploy STACK={drift.stack}`.\n"
        )
    for number, difference in enumerate(drift.differences):
        part = _difference(difference)
        if len(text) + len(part) > MAX_TEXT - ROOM:
            left = count - number
            text += f"\nToo much for one text: {left} more, in the workflow's log.\n"
            break
        text += part
    if drift.undeclared:
        text += _removal(drift)
    by_engine = any(difference.op not in BEYOND_UP for difference in drift.differences)
    is_lost = any(difference.is_lost for difference in drift.differences)
    text += _remediation(drift.stack, is_lost) if by_engine else ""
    return text + _not_looked_at(drift)


def _not_looked_at(drift: Drift) -> str:
    """Return the folded list of what was not judged, as long as there is room for it."""
    if not drift.not_looked_at:
        return ""
    lines, size = list[str](), 0
    for number, line in enumerate(drift.not_looked_at):
        size += len(part := f"- {_text(line)}\n")
        if size > ROOM // 2:
            left = len(drift.not_looked_at) - number
            lines.append(f"- {left} more, in the JSON of this report\n")
            break
        lines.append(part)
    count = len(drift.not_looked_at)
    head = f"\n<details><summary>Not looked at: {count}</summary>\n\n"
    return head + "".join(lines) + "\n</details>\n"


def _difference(difference: ResourceDifference) -> str:
    text = f"\n### {_text(difference.name)} {difference.summary}\n\n{_text(difference.type)}"
    text += f", {_text(difference.id)}\n" if difference.id else "\n"
    if difference.fields:
        text += "\n| property | in the cloud | declared |\n|---|---|---|\n"
        for field in difference.fields:
            cells = (field.path, field.cloud, field.declared)
            text += "| " + " | ".join(_text(cell) or "(none)" for cell in cells) + " |\n"
    return text + (f"\n{_text(difference.note)}\n" if difference.note else "")


def _remediation(stack: str, is_lost: bool) -> str:
    if is_lost:
        return (
            "\n**Restore what was deleted before anything else**, as said above: a deployment with "
            "*refresh* makes it anew, empty, and nothing can be restored under its name then "
            f"(docs/operations.md). Afterwards compare again: `make drift STACK={stack}`.\n"
        )
    preview = f"make preview STACK={stack} REFRESH=1"
    return (
        f"\nTo undo what was changed by hand: `{preview}` shows the plan that does it; run the "
        "workflow *deploy* by hand with the digest of that report and *refresh*. To keep it, "
        "declare it in a pull request.\n"
    )


def _removal(drift: Drift) -> str:
    command = f"vt drift --stack {drift.stack} --remove {drift.undeclared[:12]}"
    return (
        f"\nNo deployment removes members that are not declared. `{command}` removes exactly those "
        "above. To keep one, declare it, or list it with its reason under `drift.allowed`.\n"
    )


def _lines(text: str) -> list[str]:
    return text.splitlines() or [""]


def _text(text: str) -> str:
    """``text`` as plain text of Markdown: no secret, no markup, no mention, no new cell or line."""
    return _SPECIAL.sub(r"\\\1", visible(redact(text))).replace("\\@", "@\u200b")


def as_json(drift: Drift) -> str:
    """Return the report for programs."""
    document = dataclasses.asdict(drift) | {"outcome": drift.outcome.name.lower()}
    del document["ids"], document["declared"], document["network"], document["deployed_by_hand"]
    return json.dumps({"version": VERSION, **redact(document)}, indent=2, ensure_ascii=False) + "\n"
