"""The stack after the change as a graph: accounts, what they run, read and write.

Drawn as Mermaid's source for Markdown, and as SVG for the page, which has no scripts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from vertex_training_cli.review.escaping import label
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.report import ReviewReport

#: More jobs of one account than this become one node: a picture of 200 boxes shows nothing, and
#: Mermaid refuses more than 500 edges.
MAX_JOBS: Final = 12
MAX_EDGES: Final = 120
#: What a role lets its holder do, by parts of its name; the first that fits.
VERBS: Final = (
    ("secretAccessor", "reads"),
    ("objectViewer", "reads"),
    ("viewer", "sees"),
    ("reader", "reads"),
    ("objectUser", "writes"),
    ("logWriter", "writes logs"),
    ("writer", "writes"),
    ("serviceAccountUser", "acts as"),
    ("networkUser", "uses"),
)
#: Mermaid's brackets around a node's label, by kind.
SHAPES: Final = {"bucket": ('[("', '")]'), "secret": ('[/"', '"/]'), "account": ('(["', '"])')}


@dataclass(frozen=True, slots=True)
class Node:
    """A resource of the stack, or a member of a binding."""

    kind: str
    name: str

    @property
    def text(self) -> str:
        """What stands in its box."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Edge:
    """What one node does with the other."""

    one: Node
    other: Node
    verb: str
    new: bool
    """Whether the change brings it."""


@dataclass(slots=True)
class Graph:
    """Nodes in the order in which they are met, and their edges."""

    nodes: dict[Node, None] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    left: int = 0
    """Rights that are not drawn."""

    def add(self, one: Node, other: Node, verb: str, *, new: bool) -> None:
        """Add an edge, and its ends."""
        self.nodes |= {one: None, other: None}
        self.edges.append(Edge(one, other, verb, new))


def graph(report: ReviewReport) -> Graph:
    """The stack after the change."""
    drawn, gained = Graph(), set(report.gained)
    # New bindings first: a reader looks for them.
    for binding in sorted(report.held, key=lambda binding: binding not in gained)[:MAX_EDGES]:
        drawn.add(_holder(binding), _target(binding), _verb(binding.role), new=binding in gained)
    drawn.left = max(0, len(report.held) - MAX_EDGES)
    by_account: defaultdict[str, list[JobChange]] = defaultdict(list)
    for job in report.jobs:
        if job.action != "cancel":
            by_account[job.account].append(job)
    for account, jobs in sorted(by_account.items()):
        runner = Node("account", _account(account))
        if len(jobs) > MAX_JOBS:
            changed = sum(job.action != "keep" for job in jobs)
            many = Node("jobs", f"{len(jobs)}, {changed} of them new or changed")
            drawn.add(many, runner, "run as", new=changed > 0)
        else:
            for job in jobs:
                drawn.add(Node("job", job.name), runner, "runs as", new=job.submits)
    return drawn


def mermaid(drawn: Graph) -> str:
    """The picture's source; empty if there is nothing to draw."""
    return "\n".join(_mermaid(drawn)) if drawn.edges else ""


def _mermaid(drawn: Graph) -> Iterator[str]:
    yield "flowchart LR"
    ids = {node: f"n{number}" for number, node in enumerate(drawn.nodes)}
    for node, id_ in ids.items():
        before, after = SHAPES.get(node.kind, ('["', '"]'))
        yield f"  {id_}{before}{label(node.text)}{after}"
    for edge in drawn.edges:
        yield f'  {ids[edge.one]} -- "{label(edge.verb)}" --> {ids[edge.other]}'
    if drawn.left:
        yield f'  more["and {drawn.left} more rights"]'
    if new := [str(number) for number, edge in enumerate(drawn.edges) if edge.new]:
        yield f"  linkStyle {','.join(new)} stroke:#8a5a00,stroke-width:3px"


def _holder(binding: IamBinding) -> Node:
    kind, _, name = binding.member.partition(":")
    if kind == "serviceAccount":
        return Node("account", _account(name))
    return Node(kind if name else "everybody", name or binding.member)


def _target(binding: IamBinding) -> Node:
    tail = binding.target.rpartition("/")[2]
    return Node(binding.kind, _account(tail) if "@" in tail else tail)


def _account(address: str) -> str:
    """``trainer-dev`` of the address of a stack's account; others in full."""
    name, _, domain = address.partition("@")
    return name if domain.count(".") == 3 and "gcp-sa" not in domain else address


def _verb(role: str) -> str:
    short = role.rpartition("/")[2]
    return next((verb for part, verb in VERBS if part.lower() in short.lower()), short)
