"""The report as one HTML page: no script, no request to anywhere, light and dark.

The stack after the change is drawn as SVG: members, jobs and endpoints, accounts, and resources in
three columns. Each line meets a box at a place of its own, and is straight as far as its word is
long, so no line crosses a word.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import jinja2
from markupsafe import Markup, escape

from vertex_training_cli.review.escaping import cut, visible
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.parts import Edge, Graph, Node
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.sections import EVERYBODY, sections

#: Characters around values and strong words -> their tags. They are of Unicode's private use, so
#: ``visible`` spells them out wherever a value has one, and no value makes a tag.
TAGS: Final = {"\ue000": "<code>", "\ue001": "</code>", "\ue002": "<strong>", "\ue003": "</strong>"}
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


def render(report: ReviewReport) -> str:
    """The page. Every value is escaped by the template engine, and nothing is left out."""
    return template().render(
        report=report,
        verdict=verdict(report, _quoted),
        answers=answers(report, _quoted),
        sections=sections(report, _quoted, lambda words: f"\ue002{words}\ue003"),
    )


def _quoted(value: str, _length: int = 0) -> str:
    shown = visible(value)
    return f"\ue000{shown}\ue001" if shown else ""


def _tagged(text: str) -> Markup:
    """Words with tags around values and strong words, everything else escaped."""
    return Markup(str(escape(text)).translate(str.maketrans(TAGS)))


def _untagged(text: str) -> str:
    """The same words alone, for an attribute."""
    return text.translate(dict.fromkeys(map(ord, TAGS)))


@functools.cache
def template() -> jinja2.Template:
    """The page's template, compiled."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.review", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "visible": visible,
        "tagged": _tagged,
        "untagged": _untagged,
        "kind": lambda part: type(part).__name__,
        "layout": _layout,
    }
    return environment.get_template("page.html.j2")


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


def _layout(drawn: Graph) -> Picture:
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
