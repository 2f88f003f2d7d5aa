"""The stack after the change as a Mermaid picture: who runs what, reads what, writes what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vt.review.jobs import Job
from vt.review.report import Report
from vt.review.rights import Right
from vt.review.text import label

#: More jobs of one account than this become one node: a picture of 200 boxes shows nothing, and
#: Mermaid refuses more than 500 edges.
MAX_JOBS, MAX_EDGES = 12, 120
#: What a role lets its holder do, by parts of its name; the first that fits.
VERBS = (
    ("secretAccessor", "reads"),
    ("objectViewer", "reads"),
    ("viewer", "sees"),
    ("reader", "reads"),
    ("objectUser", "writes"),
    ("logWriter", "writes logs"),
    ("writer", "writes"),
    ("serviceAccountUser", "acts as"),
)
SHAPES = {"bucket": ('[("', '")]'), "secret": ('[/"', '"/]'), "account": ('(["', '"])')}


def mermaid(report: Report) -> str:
    """The picture's source; empty if there is nothing to draw."""
    drawing = _Drawing()
    gained = set(report.gained)
    for right in report.held[:MAX_EDGES]:
        drawing.right(right, new=right in gained)
    left = len(report.held) - MAX_EDGES
    by_account: defaultdict[str, list[Job]] = defaultdict(list)
    for job in report.jobs:
        if job.action != "cancel":
            by_account[job.account].append(job)
    for account, jobs in sorted(by_account.items()):
        drawing.jobs(account, jobs)
    return "\n".join(drawing.lines(left)) if drawing.edges else ""


class _Drawing:
    """Nodes by what they stand for, and edges between them."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, str], str] = {}
        self.shown: list[str] = []
        self.edges: list[str] = []
        self.new: list[int] = []

    def right(self, right: Right, *, new: bool) -> None:
        holder = self._node(*_holder(right.member))
        target = self._node(right.kind, _last(right.target))
        self._edge(holder, target, _verb(right.role), new=new)

    def jobs(self, account: str, jobs: list[Job]) -> None:
        runner = self._node("account", _account(account))
        if len(jobs) > MAX_JOBS:
            changed = sum(job.action != "keep" for job in jobs)
            node = self._node("job", f"{len(jobs)} jobs, {changed} of them new or changed")
            self._edge(node, runner, "run as", new=changed > 0)
            return
        for job in jobs:
            node = self._node("job", job.name)
            self._edge(node, runner, "runs as", new=job.submits)

    def lines(self, left: int) -> Iterator[str]:
        yield "flowchart LR"
        yield from (f"  {line}" for line in self.shown)
        yield from (f"  {line}" for line in self.edges)
        if left > 0:
            yield f'  more["and {left} more rights"]'
        if self.new:
            yield f"  linkStyle {','.join(map(str, self.new))} stroke:#1a7f37,stroke-width:3px"

    def _node(self, kind: str, name: str) -> str:
        if (kind, name) not in self.nodes:
            id_ = self.nodes[kind, name] = f"n{len(self.nodes)}"
            before, after = SHAPES.get(kind, ('["', '"]'))
            self.shown.append(f"{id_}{before}{label(f'{kind} {name}')}{after}")
        return self.nodes[kind, name]

    def _edge(self, one: str, other: str, words: str, *, new: bool) -> None:
        if new:
            self.new.append(len(self.edges))
        self.edges.append(f'{one} -- "{label(words)}" --> {other}')


def _holder(member: str) -> tuple[str, str]:
    kind, _, name = member.partition(":")
    if kind == "serviceAccount":
        return "account", _account(name)
    return ("everybody" if not name else kind), name or member


def _account(address: str) -> str:
    """``trainer-dev`` of the address of a stack's account; others in full."""
    name, _, domain = address.partition("@")
    return name if domain.count(".") == 3 and "gcp-sa" not in domain else address


def _last(name: str) -> str:
    tail = name.rpartition("/")[2]
    return _account(tail) if "@" in tail else tail


def _verb(role: str) -> str:
    short = role.rpartition("/")[2]
    return next((verb for part, verb in VERBS if part.lower() in short.lower()), short)
