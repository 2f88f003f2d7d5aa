"""The picture in pixels and as Mermaid's source, whole, computed by hand from its sizes."""

from __future__ import annotations

from vertex_training_cli.review import picture
from vertex_training_cli.review.picture import Box, EdgeLine, Graph, Node, Picture

JOB, ACCOUNT, BUCKET = Node("job", "a"), Node("account", "x"), Node("bucket", "b")


def drawn(*edges: tuple[Node, Node, str, bool], left: int = 0) -> Graph:
    graph = Graph(left=left)
    for one, other, verb, new in edges:
        graph.add(one, other, verb, new=new)
    return graph


def test_accounts_that_act_as_accounts_have_a_lane_left_of_them() -> None:
    everybody = Node("everybody", "allUsers")
    found = picture.layout(
        drawn((Node("account", "y"), ACCOUNT, "acts as", False), (everybody, BUCKET, "reads", True))
    )
    assert found == Picture(
        width=1504,
        height=108,
        boxes=(
            Box("everybody allUsers", 12, 36, 36), Box("account y", 672, 12, 36),
            Box("account x", 672, 60, 36), Box("bucket b", 1202, 36, 36),
        ),
        lines=(
            EdgeLine("M672 30 H542 C487 30 487 78 542 78 H672", 666, 74, "end", "acts as",
                     "account y acts as account x", False, False),
            EdgeLine("M302 54 H432 C752 54 752 54 1072 54 H1202", 308, 50, "start", "reads",
                     "everybody allUsers reads bucket b", True, True),
        ),
        undrawn="",
    )  # fmt: skip
