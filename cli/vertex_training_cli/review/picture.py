"""The stack after the change as a graph: accounts, what they run, read and write; endpoints.

Drawn as Mermaid's source for Markdown, and laid out as SVG for the page, which has no scripts:
members, jobs and endpoints, accounts, and resources in three columns. Each line meets a box at a
place of its own, and is straight as far as its word is long, so no line crosses a word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from vertex_training_cli.review.escaping import cut, label
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
#: Kind of a member that includes everybody.
EVERYBODY: Final = "everybody"
#: Mermaid's brackets around a node's label, by kind.
SHAPES: Final = {"bucket": ('[("', '")]'), "secret": ('[/"', '"/]'), "account": ('(["', '"])')}
#: Pixels: a box, the space around one, and the space between two lines at a box.
WIDTH: Final = 290
HEIGHT: Final = 30
GAP: Final = 12
PORT: Final = 18
#: Pixels beside a column: where words stand, and where lines bend.
LANE: Final = 130
BEND: Final = 110
#: Characters that fit into a box, and beside it.
FITS: Final = 38
WORD: Final = 17


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
    endpoints_left: int = 0
    """Endpoints that are not drawn."""

    @property
    def undrawn(self) -> str:
        """What is not drawn, in words; empty if all is."""
        counted = ((self.left, "rights"), (self.endpoints_left, "endpoints"))
        return " and ".join(f"{count} more {what}" for count, what in counted if count)

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
    _add_endpoints(drawn, report)
    return drawn


def _add_endpoints(drawn: Graph, report: ReviewReport) -> None:
    """Endpoints with the shares of their versions, those that change first."""
    there = [each for each in report.endpoints if each.action != "delete"]
    drawn.endpoints_left = max(0, len(there) - MAX_JOBS)
    for each in sorted(there, key=lambda each: each.action == "keep")[:MAX_JOBS]:
        endpoint = Node("endpoint", each.name)
        for run, share in each.after.items():
            version = Node("model", f"{each.model} {run}")
            drawn.add(endpoint, version, f"{share} %", new=share != each.before.get(run))
        if each.account:
            runner = Node("account", _account(each.account))
            drawn.add(endpoint, runner, "runs as", new=not each.before)


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
    if drawn.undrawn:
        yield f'  more["and {drawn.undrawn}"]'
    if new := [str(number) for number, edge in enumerate(drawn.edges) if edge.new]:
        yield f"  linkStyle {','.join(new)} stroke:#8a5a00,stroke-width:3px"


def _holder(binding: IamBinding) -> Node:
    kind, _, name = binding.member.partition(":")
    if kind == "serviceAccount":
        return Node("account", _account(name))
    return Node(kind if name else EVERYBODY, name or binding.member)


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


@dataclass(frozen=True, slots=True)
class Box:
    """A node with its place."""

    text: str
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """An edge: its path, its verb and the place of that, and a sentence for screen readers."""

    path: str
    x: int
    y: int
    anchor: str
    verb: str
    sentence: str
    new: bool
    is_public: bool
    """Whether everybody does it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything in pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[EdgeLine, ...]
    undrawn: str
    box_width: int = WIDTH


def layout(drawn: Graph) -> Picture:
    """Nodes in columns, each column in the middle; edges as curves between them."""
    return _Layout(drawn).picture()


class _Layout:
    """Places of nodes, and of the ends of edges at them."""

    def __init__(self, drawn: Graph) -> None:
        self.drawn = drawn
        targets = {edge.other for edge in drawn.edges}
        self.column = {
            node: 1 if node.kind == "account" else 2 if node in targets else 0
            for node in drawn.nodes
        }
        # Accounts that act as accounts have their words left of them.
        self.lane = LANE * any(self._loops(edge) for edge in drawn.edges)
        second = GAP + WIDTH + LANE + BEND + self.lane
        self.x = (GAP, second, second + WIDTH + BEND + LANE)
        #: Edges at the left and the right side of each node.
        self.sides: dict[tuple[Node, str], list[Edge]] = {}
        for edge in drawn.edges:
            side = "left" if self._loops(edge) else "right"
            self.sides.setdefault((edge.one, side), []).append(edge)
            self.sides.setdefault((edge.other, "left"), []).append(edge)
        self.boxes = self._boxes()
        order = {node: number for number, node in enumerate(self.boxes)}
        for (node, _), edges in self.sides.items():
            edges.sort(key=lambda e: (order[e.other if e.one == node else e.one], e.verb))

    def picture(self) -> Picture:
        return Picture(
            width=self.x[2] + WIDTH + GAP,
            height=max((box.y + box.height for box in self.boxes.values()), default=0) + GAP,
            boxes=tuple(self.boxes.values()),
            lines=tuple(self._line(edge) for edge in self.drawn.edges),
            undrawn=self.drawn.undrawn,
        )

    def _loops(self, edge: Edge) -> bool:
        return self.column[edge.one] >= self.column[edge.other]

    def _boxes(self) -> dict[Node, Box]:
        """Each column in the middle of the tallest one."""
        columns = [[n for n in self.drawn.nodes if self.column[n] == c] for c in range(3)]
        heights = {node: self._height(node) for node in self.drawn.nodes}
        sums = [sum(heights[node] + GAP for node in column) for column in columns]
        found: dict[Node, Box] = {}
        for x, column, height in zip(self.x, columns, sums, strict=True):
            y = GAP + (max(sums) - height) // 2
            for node in column:
                found[node] = Box(cut(node.text, FITS), x, y, heights[node])
                y += heights[node] + GAP
        return found

    def _height(self, node: Node) -> int:
        lines = max(len(self.sides.get((node, side), ())) for side in ("left", "right"))
        return max(HEIGHT, (lines + 1) * PORT)

    def _port(self, node: Node, side: str, edge: Edge) -> tuple[int, int]:
        """Where an edge meets its node."""
        box, edges = self.boxes[node], self.sides[node, side]
        index = next(n for n, each in enumerate(edges) if each is edge)
        y = box.y + box.height // 2 + (2 * index - len(edges) + 1) * PORT // 2
        return box.x + WIDTH * (side == "right"), y

    def _line(self, edge: Edge) -> EdgeLine:
        """A word stands where lines are straight: at who acts, or at what is acted on."""
        x2, y2 = self._port(edge.other, "left", edge)
        if self._loops(edge):
            x1, y1 = self._port(edge.one, "left", edge)
            bend = min(x1, x2) - LANE
            out = bend - BEND // 2
            path = f"M{x1} {y1} H{bend} C{out} {y1} {out} {y2} {bend} {y2} H{x2}"
            x, y, anchor = x2 - 6, y2 - 4, "end"
        else:
            x1, y1 = self._port(edge.one, "right", edge)
            first = self.column[edge.one] == 0
            # Beside members and beside resources there are words, whether or not this line's.
            start = x1 + LANE * first
            end = x2 - (LANE if self.column[edge.other] == 2 else self.lane)
            half = (start + end) // 2
            path = f"M{x1} {y1} H{start} C{half} {y1} {half} {y2} {end} {y2} H{x2}"
            x, y, anchor = (x1 + 6, y1 - 4, "start") if first else (x2 - 6, y2 - 4, "end")
        sentence = f"{edge.one.text} {edge.verb} {edge.other.text}"
        return EdgeLine(
            path, x, y, anchor, cut(edge.verb, WORD), sentence, edge.new, edge.one.kind == EVERYBODY
        )
