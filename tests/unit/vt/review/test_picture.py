"""The picture of the stack after a change."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import picture, report
from vertex_training_cli.review.picture import Graph, Node


def graph(*told: plans.Event) -> Graph:
    return picture.graph(report.build(plans.plan(*told), source="here"))


def submit(name: str) -> plans.Event:
    return plans.create(plans.JOB, f"training-{name}", **plans.job(name))


def edges(drawn: Graph) -> list[tuple[str, str, str, bool]]:
    return [(edge.one.text, edge.verb, edge.other.text, edge.new) for edge in drawn.edges]


def test_new_rights_and_jobs_are_marked_and_old_ones_are_there() -> None:
    kept = plans.member("data")
    drawn = graph(
        plans.step("same", plans.MEMBER, "m", old=kept, new=kept),
        plans.create(plans.MEMBER, "w", **plans.member("out", "roles/storage.objectUser")),
        submit("train"),
    )
    assert edges(drawn) == [
        ("account trainer-dev", "writes", "bucket out", True),
        ("account trainer-dev", "reads", "bucket data", False),
        ("job train", "runs as", "account trainer-dev", True),
    ]


def test_what_goes_away_is_not_drawn() -> None:
    gone = graph(
        plans.delete(plans.MEMBER, "m", **plans.member("data")),
        plans.delete(plans.JOB, "training-a", **plans.job("a")),
    )
    assert (edges(gone), picture.mermaid(gone)) == ([], "")


def test_accounts_of_google_keep_their_whole_address() -> None:
    agent = "serviceAccount:service-1@gcp-sa-aiplatform.iam.gserviceaccount.com"
    drawn = graph(plans.create(plans.MEMBER, "m", **plans.member("data", who=agent)))
    assert drawn.edges[0].one == Node("account", agent.removeprefix("serviceAccount:"))


def test_a_role_without_a_word_goes_by_its_own_name() -> None:
    drawn = graph(plans.create(plans.MEMBER, "m", **plans.member("data", "roles/x.special")))
    assert drawn.edges[0].verb == "x.special"


def test_many_rights_and_jobs_do_not_fill_the_picture() -> None:
    rights = [plans.create(plans.MEMBER, f"m{n}", **plans.member(f"b{n:03}")) for n in range(200)]
    drawn = graph(*rights, *(submit(f"job-{n}") for n in range(200)))
    assert len(drawn.edges) == picture.MAX_EDGES + 1
    assert drawn.left == 200 - picture.MAX_EDGES
    assert "80 more rights" in picture.mermaid(drawn)
    assert "200, 200 of them new or changed" in drawn.edges[-1].one.text


def test_boxes_do_not_overlap_and_lie_inside_of_the_picture() -> None:
    drawn = graph(
        *(plans.create(plans.MEMBER, f"m{n}", **plans.member(f"bucket-{n}")) for n in range(9)),
        *(submit(f"job-{n}") for n in range(5)),
    )
    laid = picture.layout(drawn)
    for index, box in enumerate(laid.boxes):
        assert 0 <= box.x <= laid.width - laid.box_width
        assert 0 <= box.y <= laid.height - box.height
        for other in laid.boxes[:index]:
            apart = box.y >= other.y + other.height or other.y >= box.y + box.height
            assert box.x != other.x or apart


def points(path: str) -> Iterator[tuple[float, float]]:
    """Points of a line, close to each other: of straight parts and of curves."""
    numbers = [
        [float(number) for number in part.split()] for part in re.split("[A-Z]", path) if part
    ]
    x, y = numbers[0]
    for command, found in zip(re.findall("[A-Z]", path)[1:], numbers[1:], strict=True):
        ends = [x, y, x, y, found[0], y, found[0], y] if command == "H" else [x, y, *found]
        for step in range(201):
            t = step / 200
            parts = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            xs, ys = (
                sum(part * at for part, at in zip(parts, ends[n::2], strict=True)) for n in (0, 1)
            )
            yield xs, ys
        x, y = ends[-2:]


def test_no_line_crosses_a_word() -> None:
    shared = [plans.member("shared", who=f"serviceAccount:a{n}@x.com") for n in range(6)]
    users = [plans.member(f"bucket-{n}", who=f"user:u{n}@x.com") for n in range(3)]
    act_as = {"role": "roles/iam.serviceAccountUser", "serviceAccountId": plans.ACCOUNT}
    laid = picture.layout(
        graph(
            *(plans.create(plans.MEMBER, f"s{n}", **each) for n, each in enumerate(shared)),
            *(plans.create(plans.MEMBER, f"u{n}", **each) for n, each in enumerate(users)),
            *(plans.create(plans.MEMBER, f"m{n}", **plans.member(f"bucket-{n}")) for n in range(9)),
            plans.create(
                "gcp:serviceaccount/iAMMember:IAMMember", "i", **act_as, member="group:ml@x.com"
            ),
            *(submit(f"job-{n}") for n in range(5)),
        )
    )
    words = [
        (line.x if line.anchor == "start" else line.x - 7 * len(line.verb), line.y, line.verb)
        for line in laid.lines
    ]
    for line in laid.lines:
        for x, y in points(line.path):
            for left, bottom, verb in words:
                inside = left < x < left + 7 * len(verb) and bottom - 10 < y < bottom
                assert not inside, (line.sentence, verb)
    for n, (left, bottom, verb) in enumerate(words):
        for start, other, _ in words[:n]:
            assert abs(bottom - other) >= 10 or start >= left + 7 * len(verb) or start < left


def test_who_acts_stands_left_of_the_account_and_what_is_acted_on_right() -> None:
    laid = picture.layout(
        graph(plans.create(plans.MEMBER, "m", **plans.member("data")), submit("a"))
    )
    x = {box.text: box.x for box in laid.boxes}
    assert x["job a"] < x["account trainer-dev"] < x["bucket data"]


def test_every_line_is_told_in_words() -> None:
    laid = picture.layout(graph(plans.create(plans.MEMBER, "m", **plans.member("data"))))
    assert [line.sentence for line in laid.lines] == ["account trainer-dev reads bucket data"]


@pytest.mark.parametrize(
    ("role", "verb"),
    [
        ("roles/secretmanager.secretAccessor", "reads"),
        ("roles/storage.objectViewer", "reads"),
        ("roles/storage.objectUser", "writes"),
        ("roles/aiplatform.viewer", "sees"),
        ("roles/artifactregistry.reader", "reads"),
        ("roles/artifactregistry.writer", "writes"),
        ("roles/logging.logWriter", "writes logs"),
        ("roles/iam.serviceAccountUser", "acts as"),
        ("roles/compute.networkUser", "uses"),
    ],
)
def test_a_right_is_drawn_with_what_it_lets_its_holder_do(role: str, verb: str) -> None:
    drawn = graph(plans.create(plans.MEMBER, "m", **plans.member("data", role)))
    assert drawn.edges[0].verb == verb


def test_a_bucket_a_secret_and_an_account_have_shapes_of_their_own() -> None:
    secret = {"secretId": "key", "role": "roles/secretmanager.secretAccessor", "member": "user:a"}
    drawn = picture.mermaid(
        graph(
            plans.create(plans.MEMBER, "m", **plans.member("data")),
            plans.create("gcp:secretmanager/secretIamMember:SecretIamMember", "s", **secret),
        )
    )
    assert '[("bucket data")]' in drawn
    assert '[/"secret key"/]' in drawn
    assert '(["account trainer-dev"])' in drawn
