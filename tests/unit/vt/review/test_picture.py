"""The picture of the stack after a change."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import picture, report, svg
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
    laid = svg.layout(drawn)
    places = [(box.x, box.y) for box in laid.boxes]
    for index, (x, y) in enumerate(places):
        assert 0 <= x <= laid.width - laid.box_width
        assert 0 <= y <= laid.height - laid.box_height
        assert not any(x == a and abs(y - b) < laid.box_height for a, b in places[:index])


def test_who_acts_stands_left_of_the_account_and_what_is_acted_on_right() -> None:
    laid = svg.layout(graph(plans.create(plans.MEMBER, "m", **plans.member("data")), submit("a")))
    x = {box.text: box.x for box in laid.boxes}
    assert x["job a"] < x["account trainer-dev"] < x["bucket data"]


def test_every_line_is_told_in_words() -> None:
    laid = svg.layout(graph(plans.create(plans.MEMBER, "m", **plans.member("data"))))
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
