"""The picture in pixels and as Mermaid's source, whole, computed by hand from its sizes."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import picture, report
from vertex_training_cli.review.picture import Box, EdgeLine, Graph, Node, Picture

JOB, ACCOUNT, BUCKET = Node("job", "a"), Node("account", "x"), Node("bucket", "b")


def drawn(*edges: tuple[Node, Node, str, bool], left: int = 0) -> Graph:
    graph = Graph(left=left)
    for one, other, verb, new in edges:
        graph.add(one, other, verb, new=new)
    return graph


def test_members_accounts_and_resources_are_three_columns() -> None:
    # Boxes are 290 wide and 36 high with one line; columns are 240 apart, and 12 from the edges.
    found = picture.layout(
        drawn((JOB, ACCOUNT, "runs as", True), (ACCOUNT, BUCKET, "reads", False), left=2)
    )
    assert found == Picture(
        width=1374,
        height=60,
        boxes=(
            Box("job a", 12, 12, 36), Box("account x", 542, 12, 36), Box("bucket b", 1072, 12, 36),
        ),
        lines=(
            EdgeLine("M302 30 H432 C487 30 487 30 542 30 H542", 308, 26, "start", "runs as",
                     "job a runs as account x", True, False),
            EdgeLine("M832 30 H832 C887 30 887 30 942 30 H1072", 1066, 26, "end", "reads",
                     "account x reads bucket b", False, False),
        ),
        undrawn="2 more rights",
        box_width=290,
    )  # fmt: skip


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


def test_lines_meet_a_box_at_places_of_their_own_in_the_order_of_boxes() -> None:
    buckets = [Node("bucket", name) for name in ("c" * 40, "d", "e")]
    edges = [(ACCOUNT, each, "writes and reads it", False) for each in buckets]
    found = picture.layout(drawn(*reversed(edges), (ACCOUNT, buckets[0], "a", False)))
    boxes = {box.text: (box.y, box.height) for box in found.boxes}
    # Four lines: (4 + 1) * 18. Two at the last box: (2 + 1) * 18.
    assert boxes == {
        "account x": (12 + (162 - 102) // 2, 90), "bucket e": (12, 36), "bucket d": (60, 36),
        f"bucket {'c' * 30}…": (108, 54),
    }  # fmt: skip
    assert [line.path.split(" ")[1] for line in found.lines] == ["60", "78", "114", "96"]
    assert [line.path.split(" ")[-2] for line in found.lines] == ["30", "78", "144", "126"]
    assert [line.verb for line in found.lines] == ["writes and reads…"] * 3 + ["a"]


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert picture.layout(Graph()) == Picture(1374, 12, (), (), "")
    assert picture.mermaid(Graph(left=3)) == ""


def test_mermaids_source_has_shapes_lines_and_what_is_new() -> None:
    secret = Node("secret", "s")
    graph = drawn(
        (JOB, ACCOUNT, "runs as", True), (ACCOUNT, BUCKET, "reads", False),
        (ACCOUNT, secret, "reads", True), left=7,
    )  # fmt: skip
    assert picture.mermaid(graph) == (
        "flowchart LR\n"
        '  n0["job a"]\n'
        '  n1(["account x"])\n'
        '  n2[("bucket b")]\n'
        '  n3[/"secret s"/]\n'
        '  n0 -- "runs as" --> n1\n'
        '  n1 -- "reads" --> n2\n'
        '  n1 -- "reads" --> n3\n'
        '  more["and 7 more rights"]\n'
        "  linkStyle 0,2 stroke:#8a5a00,stroke-width:3px"
    )
    assert picture.mermaid(drawn((JOB, ACCOUNT, "runs as", False))).splitlines()[-1] == (
        '  n0 -- "runs as" --> n1'
    )


@pytest.mark.parametrize(("count", "left"), [(119, 0), (120, 0), (121, 1), (125, 5)])
def test_rights_beyond_the_limit_are_counted(count: int, left: int) -> None:
    events = [plans.create(plans.MEMBER, f"m{n}", **plans.member(f"b{n}")) for n in range(count)]
    graph = picture.graph(report.build(plans.plan(*events), source="here"))
    assert (len(graph.edges), graph.left) == (min(count, 120), left)


@pytest.mark.parametrize(
    ("count", "nodes"),
    [(12, {f"job j{n}" for n in range(12)}), (13, {"jobs 13, 13 of them new or changed"})],
)
def test_many_jobs_of_an_account_are_one_node(count: int, nodes: set[str]) -> None:
    events = [plans.create(plans.JOB, f"j{n}", **plans.job(f"j{n}")) for n in range(count)]
    graph = picture.graph(report.build(plans.plan(*events), source="here"))
    assert {edge.one.text for edge in graph.edges} == nodes
    assert {edge.verb for edge in graph.edges} == {"runs as" if count == 12 else "run as"}
    same = [
        plans.step("same", plans.JOB, f"j{n}", plans.job(f"j{n}"), plans.job(f"j{n}"))
        for n in range(count)
    ]
    kept = picture.graph(report.build(plans.plan(*same), source="here"))
    assert [edge.new for edge in kept.edges] == [False] * (12 if count == 12 else 1)


def edges_of(*events: plans.Event) -> list[tuple[str, str, str, bool]]:
    graph = picture.graph(report.build(plans.plan(*events), source="here"))
    return [(edge.one.text, edge.verb, edge.other.text, edge.new) for edge in graph.edges]


def of_account(name: str, address: str) -> plans.Event:
    return plans.create(plans.JOB, name, **plans.job(name, serviceAccount=address))


def test_accounts_are_drawn_by_their_names_in_the_order_of_their_addresses() -> None:
    act_as = {"role": "roles/iam.serviceAccountUser", "member": "group:ml@example.com"}
    target = "projects/acme-ml-dev/serviceAccounts/"
    agent = "service-1@gcp-sa-aiplatform.iam.gserviceaccount.com"
    iam = "gcp:serviceaccount/iAMMember:IAMMember"
    assert edges_of(
        of_account("late", "b@acme-ml-dev.iam.gserviceaccount.com"),
        of_account("early", "a@acme-ml-dev.iam.gserviceaccount.com"),
        of_account("default", "12-compute@developer.gserviceaccount.com"),
        plans.create(iam, "i", **act_as, serviceAccountId=f"{target}{plans.ACCOUNT}"),
        plans.create(iam, "j", **act_as, serviceAccountId=f"{target}{agent}"),
        plans.create(plans.MEMBER, "m", **plans.member("d", "projects/p/roles/x", "allUsers")),
    ) == [
        ("everybody allUsers", "x", "bucket d", True),
        ("group ml@example.com", "acts as", f"account {agent}", True),
        ("group ml@example.com", "acts as", "account trainer-dev", True),
        ("job default", "runs as", "account 12-compute@developer.gserviceaccount.com", True),
        ("job early", "runs as", "account a", True),
        ("job late", "runs as", "account b", True),
    ]
