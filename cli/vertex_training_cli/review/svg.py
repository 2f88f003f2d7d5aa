"""The graph laid out in three columns, for the page: members, accounts, resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vertex_training_cli.review.escaping import cut
from vertex_training_cli.review.picture import Edge, Graph, Node

#: Pixels: a box, the space between rows and the space between columns.
WIDTH: Final = 300
HEIGHT: Final = 30
GAP: Final = 12
COLUMN_GAP: Final = 180
#: Characters that fit into a box.
FITS: Final = 38


@dataclass(frozen=True, slots=True)
class Box:
    """A node with its place."""

    text: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge: its path, its verb and the place of that, and a sentence for screen readers."""

    path: str
    x: int
    y: int
    anchor: str
    verb: str
    sentence: str
    new: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything in pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    left: int
    box_width: int = WIDTH
    box_height: int = HEIGHT


def layout(graph: Graph) -> Picture:
    """Nodes in columns, each column in the middle; edges as curves between them."""
    columns: tuple[list[Node], list[Node], list[Node]] = ([], [], [])
    for node in graph.nodes:
        columns[_column(node, graph.edges)].append(node)
    tallest = max((len(column) for column in columns), default=0)
    height = tallest * (HEIGHT + GAP) + GAP
    places: dict[Node, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        free = height - len(column) * (HEIGHT + GAP)
        for row, node in enumerate(column):
            x = GAP + number * (WIDTH + COLUMN_GAP)
            places[node] = x, (free + GAP) // 2 + row * (HEIGHT + GAP)
    return Picture(
        width=2 * GAP + 3 * WIDTH + 2 * COLUMN_GAP,
        height=height,
        boxes=tuple(Box(cut(node.text, FITS), *place) for node, place in places.items()),
        lines=tuple(_line(edge, places) for edge in graph.edges),
        left=graph.left,
    )


def _column(node: Node, edges: Iterable[Edge]) -> int:
    """Accounts in the middle, what is acted on to their right, what acts to their left."""
    if node.kind == "account":
        return 1
    return 2 if any(edge.other == node for edge in edges) else 0


def _line(edge: Edge, places: dict[Node, tuple[int, int]]) -> Line:
    (x1, y1), (x2, y2) = places[edge.one], places[edge.other]
    forward = x2 > x1
    start, end = (x1 + WIDTH, x2) if forward else (x1, x2 + WIDTH if x2 < x1 else x2)
    y1, y2 = y1 + HEIGHT // 2, y2 + HEIGHT // 2
    # Many lines meet at an account; their words stand at the other end.
    at_start = edge.other.kind == "account"
    bend = COLUMN_GAP // 2 if forward else -COLUMN_GAP // 2
    return Line(
        path=f"M{start} {y1} C{start + bend} {y1} {end - bend} {y2} {end} {y2}",
        x=start + 6 if at_start else end - 6,
        y=(y1 if at_start else y2) - 5,
        anchor="start" if at_start else "end",
        verb=edge.verb,
        sentence=f"{edge.one.text} {edge.verb} {edge.other.text}",
        new=edge.new,
    )
