"""Versions and endpoints of a plan as whole values, and the tables that a report has of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from tests.unit.vt.review.quotes import quote
from tests.unit.vt.review.test_serving import (
    BETTER,
    BOTH,
    GOOD,
    IMAGE,
    ONE,
    OTHER,
    PRIVATE,
    SHELL,
    TRAFFIC,
    VERSION,
    Event,
    shell,
    traffic,
    version,
)
from vertex_training_cli.review import serving, serving_sections
from vertex_training_cli.review.parts import Entry, Listing, Paragraph, ReportSection, Row, Table
from vertex_training_cli.review.serving import (
    EndpointChange,
    ServingRisk,
    VersionChange,
    endpoint_changes,
    version_changes,
)


def changed(**more: Any) -> VersionChange:
    found: dict[str, Any] = {
        "name": "titanic-4", "model": "titanic", "job": "titanic", "run": "4", "action": "upload",
        "image": IMAGE, "image_before": "", "metrics": GOOD, "unanswered": "",
    }  # fmt: skip
    return VersionChange(**found | more)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (plans.create(VERSION, "titanic-4", **version(4)), changed()),
        (plans.create(VERSION, "titanic-4", **version(4.0)), changed()),  # type: ignore[arg-type]
        (plans.delete(VERSION, "titanic-4", **version(4)), changed(action="leave")),
        (plans.delete(VERSION, "titanic-4", **version(4, on_delete="delete")),
         changed(action="delete")),
        (plans.step("same", VERSION, "titanic-4", version(4), version(4)), changed(action="keep")),
        (plans.step("read", VERSION, "titanic-4", version(4), version(4)), changed(action="keep")),
        (plans.step("update", VERSION, "titanic-4", version(4), version(4, BETTER)),
         changed(action="change", metrics=BETTER)),
        (plans.step("replace", VERSION, "titanic-4", version(4, image=OTHER), version(4)),
         changed(action="replace", image_before=OTHER)),
        (plans.create(VERSION, "titanic-4", **version(4, resolved={"unanswered": "no"})),
         changed(metrics={}, unanswered="no")),
        (plans.create(VERSION, "v", container="{"), changed(
            name="v", model="v", job="", run="", image="", metrics={})),
        (plans.create(VERSION, "v", container="[]", model={"run": "x"}), changed(
            name="v", model="v", job="", run="x", image="", metrics={})),
    ],
)  # fmt: skip
def test_a_version_is_one_of_a_run_with_what_it_measured(
    event: Event, expected: VersionChange
) -> None:
    assert version_changes(plans.plan(event)) == (expected,)
    assert expected.title == f"model {expected.model} run {expected.run}"


def test_versions_are_in_the_order_of_their_runs_and_metrics_are_numbers() -> None:
    odd = {"a": 1, "b": True, "c": "2", "d": 10**309, "e": -1.5, "f": None}
    many = {f"m{n:02d}": n for n in range(51)}
    found = version_changes(plans.plan(
        plans.create(VERSION, "t-10", **version(10, odd)),
        plans.create(VERSION, "t-9", **version(9, many)),
        plans.create(VERSION, "a-1", **version(11, {}) | {"model": {"model": "a", "run": 1}}),
    ))  # fmt: skip
    assert [(each.model, each.run) for each in found] == [
        ("a", "1"), ("titanic", "9"), ("titanic", "10")
    ]  # fmt: skip
    assert list(found[1].metrics) == [f"m{n:02d}" for n in range(50)]
    assert found[2].metrics == {"a": 1.0, "e": -1.5}


def endpoint(**more: Any) -> EndpointChange:
    found: dict[str, Any] = {
        "name": "titanic", "model": "titanic", "action": "change", "before": ONE, "after": BOTH,
        "machine": "1 to 2 x n1-standard-2 a version", "cost_before": None, "cost": None,
        "reach_before": "", "reach": "", "account": "trainer@p.iam",
        "metrics": {"run 3": {}, "run 4": {}},
    }  # fmt: skip
    return EndpointChange(**found | more)


def without_costs(*events: Event) -> EndpointChange:
    [found] = endpoint_changes(plans.plan(*events))
    return endpoint(**{
        name: getattr(found, name) for name in EndpointChange.__slots__
        if name not in ("cost", "cost_before")
    })  # fmt: skip


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH)), endpoint()),
        (plans.create(TRAFFIC, "t", **traffic(ONE)),
         endpoint(action="create", before={}, after=ONE, metrics={"run 3": {}})),
        (plans.delete(TRAFFIC, "t", **traffic(ONE)),
         endpoint(action="delete", after={}, metrics={"run 3": {}})),
        (plans.step("same", TRAFFIC, "t", traffic(ONE), traffic(ONE)),
         endpoint(action="keep", after=ONE, metrics={"run 3": {}})),
        (plans.step("refresh", TRAFFIC, "t", traffic(ONE), traffic(ONE)),
         endpoint(action="keep", after=ONE, metrics={"run 3": {}})),
        (plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(ONE), outputs={
            "deployed": traffic({"run 5": 1})["deployed"], "split": {}}),
         endpoint(before={"run 5": 0}, after=ONE, metrics={"run 5": {}, "run 3": {}})),
        (plans.create(TRAFFIC, "t", **traffic({"run 10": 1, "run 9": 99})), endpoint(
            action="create", before={}, after={"run 9": 99, "run 10": 1},
            metrics={"run 9": {}, "run 10": {}})),
        (plans.create(TRAFFIC, "t", **traffic(ONE, least=2)), endpoint(
            action="create", before={}, after=ONE, metrics={"run 3": {}},
            machine="2 x n1-standard-2 a version")),
        (plans.create(TRAFFIC, "t", **traffic({})), endpoint(
            action="create", before={}, after={}, metrics={}, machine="")),
        (plans.create(TRAFFIC, "t", **traffic({}) | {"endpoint": {"key": "k"}}), endpoint(
            name="k", model="k", action="create", before={}, after={}, metrics={}, machine="",
            account="")),
        (plans.create(TRAFFIC, "t", **traffic({}) | {"endpoint": 3, "split": {"run 1": 0.0}}),
         endpoint(name="t", model="t", action="create", before={}, after={"run 1": 0},
                  metrics={"run 1": {}}, machine="", account="")),
        (plans.create(TRAFFIC, "t", **traffic({}) | {
            "deployed": {"run 3": {"min": 1, "max": 1, "machine": {
                "machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4",
                "acceleratorCount": 1}}}, "split": {"run 3": "x"}}), endpoint(
            action="create", before={}, after={"run 3": 0}, metrics={"run 3": {}},
            machine="1 x g2-standard-8 (1 NVIDIA_L4) a version")),
    ],
)  # fmt: skip
def test_an_endpoint_is_what_it_was_and_what_it_becomes(
    event: Event, expected: EndpointChange
) -> None:
    assert without_costs(event) == expected
    assert expected.runs == tuple(dict.fromkeys((*expected.before, *expected.after)))


@pytest.mark.parametrize(
    ("shell_event", "reach_before", "reach", "text"),
    [
        (plans.create(SHELL, "s", **shell()), "", "public", "public"),
        (plans.create(SHELL, "s", **shell(labels={"vt-public": "named"})), "",
         "public, as the stack file says", "public, as the stack file says"),
        (plans.create(SHELL, "s", **shell(**PRIVATE)), "", "private, by Private Service Connect",
         "private, by Private Service Connect"),
        (plans.create(SHELL, "s", **shell(network="n")), "", "private, by peering",
         "private, by peering"),
        (plans.step("replace", SHELL, "s", shell(network="n"), shell()), "private, by peering",
         "public", "private, by peering → public"),
        (plans.step("same", SHELL, "s", shell(), shell()), "public", "public", "public"),
        (plans.delete(SHELL, "s", **shell()), "public", "", "public"),
        (plans.create(SHELL, "s", **shell(name="other")), "", "", ""),
        (plans.create(SHELL, "s", **shell(name="projects/p/endpoints/123456789")), "", "public",
         "public"),
    ],
)  # fmt: skip
def test_an_endpoint_is_reached_as_its_shell_says(
    shell_event: Event, reach_before: str, reach: str, text: str
) -> None:
    found = without_costs(
        shell_event, plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH))
    )
    assert found == endpoint(reach_before=reach_before, reach=reach)
    assert serving.reach_text(found) == text


def test_metrics_of_an_endpoint_are_those_of_its_models_versions() -> None:
    found = without_costs(
        plans.step("same", VERSION, "titanic-3", version(3), version(3)),
        plans.create(VERSION, "o-4", **version(4) | {"model": {"model": "o", "run": 4}}),
        plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH)),
    )
    assert found == endpoint(metrics={"run 3": GOOD, "run 4": {}})


#: n1-standard-2 is $0.0949995 an hour, with the fee of 15 % and for 730 hours $79.75.
@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, traffic(ONE, most=1), "$0.00 → $79.75 a month"),
        (traffic(ONE, most=1), None, "$79.75 → $0.00 a month"),
        (traffic(ONE), traffic(ONE), "$79.75 to $159.50 a month"),
        (traffic(ONE, most=1), traffic(BOTH, most=1), "$79.75 → $159.50 a month"),
        (traffic(ONE, most=1), traffic(ONE, most=1, machine="n9-x"), "$79.75 → no price"),
    ],
)
def test_the_cost_of_a_month_is_that_of_all_versions(
    old: Event | None, new: Event | None, text: str
) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    [found] = endpoint_changes(plans.plan(plans.step(op, TRAFFIC, "t", old, new)))
    assert serving.cost_text(found) == text


@pytest.mark.parametrize(
    ("old", "new", "is_raised"),
    [
        (None, traffic(ONE), True),
        (traffic(ONE), traffic(ONE, most=3), True),
        (traffic(ONE), traffic(ONE, most=1), False),
        (traffic(ONE, least=2), traffic(ONE, most=1), False),
        (traffic(ONE, machine="n9-x"), traffic(ONE), True),
        (traffic(ONE), traffic(ONE), False),
        (traffic(ONE), None, False),
        (None, traffic({}), False),
    ],
)
def test_more_a_month_is_a_raise(old: Event | None, new: Event | None, is_raised: bool) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    found = serving.raised_costs(plans.plan(plans.step(op, TRAFFIC, "t", old, new)))
    assert bool(found) is is_raised


def doubts(old: Any, new: Any, before: Any = ONE, after: Any = BOTH) -> tuple[ServingRisk, ...]:
    return serving.doubtful_traffic(plans.plan(
        plans.step("same", VERSION, "titanic-3", version(3, old), version(3, old)),
        plans.create(VERSION, "titanic-4", **version(4, new)),
        plans.step("update", TRAFFIC, "titanic", traffic(before), traffic(after)),
    ))  # fmt: skip


LOSSES = {f"loss_{n}_error": 1.0 for n in range(4)}


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "what"),
    [
        (LOSSES, dict.fromkeys(LOSSES, 2.123456789), ONE, BOTH,
         ["run 4 is worse than run 3: loss_0_error 1 → 2.12346, loss_1_error 1 → 2.12346, "
          "loss_2_error 1 → 2.12346"]),
        ({"loss": 1}, {"loss": 1}, ONE, BOTH, []),
        ({"loss": 1, "epochs": 1}, {"loss": 0.5, "epochs": 2}, ONE, BOTH, []),
        ({"loss": 1}, {"loss": 2}, {"run 3": 50, "run 4": 50}, {"run 3": 50, "run 4": 50}, []),
        ({"loss": 1}, {"loss": 2}, {"run 3": 60, "run 4": 40}, {"run 3": 61, "run 4": 39}, []),
        ({"loss": 2}, {"loss": 1}, {"run 3": 40, "run 4": 60}, {"run 3": 41, "run 4": 59},
         ["run 3 is worse than run 4: loss 1 → 2"]),
        ({}, {"loss": 1}, ONE, BOTH, ["run 4 has no metrics that compare with run 3"]),
        ({"loss": 1}, {"loss": 2}, ONE, {"run 4": 100}, ["run 4 is worse than run 3: loss 1 → 2"]),
    ],
)  # fmt: skip
def test_traffic_is_in_doubt_where_it_grows_to_a_version_that_is_not_better(
    old: Any, new: Any, before: Any, after: Any, what: list[str]
) -> None:
    assert doubts(old, new, before, after) == tuple(ServingRisk("titanic", each) for each in what)


@pytest.mark.parametrize(
    ("name", "is_less"),
    [
        *((name, True) for name in (
            "loss", "loss_total", "error", "mse", "mae", "rmse", "mape", "perplexity", "brier",
            "regret", "latency_ms", "wer", "test_wer", "LOSS")),
        *((name, False) for name in (
            "accuracy", "auc", "precision", "recall", "score", "bleu", "rouge_l", "map", "ndcg",
            "iou", "dice", "reward", "f1", "f1_macro", "r2", "val_acc", "acc_top")),
        *((name, None) for name in ("power", "mapping", "f10", "fact", "steps")),
    ],
)  # fmt: skip
def test_the_name_of_a_metric_says_whether_less_is_better(name: str, is_less: bool | None) -> None:
    expected = {True: (True, False, False), False: (False, True, False), None: (None,) * 3}[is_less]
    found = tuple(serving.judged(name, 1, new) for new in (2, 0.5, 1))
    assert found == expected


def test_texts_of_an_endpoint() -> None:
    moved = endpoint(before={"run 3": 100}, after={"run 3": 0, "run 4": 100})
    assert [serving.share_text(moved, run) for run in ("run 3", "run 4")] == [
        "100 % → 0 %", "not deployed → 100 %",
    ]  # fmt: skip
    assert serving.split_change(moved) == "run 3: 100 → run 3: 0, run 4: 100"
    assert serving.split_change(endpoint(before={}, after={})) == "nothing"
    assert serving.metrics_text({f"m{n}": n / 3 for n in range(5)}) == (
        "m0 0, m1 0.333333, m2 0.666667, m3 1"
    )
    assert (serving.shown(None), serving.shown(1e9)) == ("", "1e+09")


def test_versions_that_change_are_a_table_with_what_could_not_be_asked() -> None:
    found = serving_sections.models(
        [
            changed(action="keep"),
            changed(image_before=OTHER, action="replace"),
            changed(run="5", action="delete", image="", metrics={}, unanswered="why"),
        ],
        quote,
    )
    columns = ("model", "version", "what happens", "job", "image", "metrics")
    images = ("<serve@sha256:222222222222>", "<serve@sha256:111111111111>")
    rows = (
        Row((("<titanic>",), ("<run 4>",), ("replace",), ("<titanic>",), images,
             ("<test_accuracy 0.81, loss 0.4>",))),
        Row((("<titanic>",), ("<run 5>",), ("delete",), ("<titanic>",), (), ("<>",)), "destroys"),
    )  # fmt: skip
    assert found == ReportSection("Models", (
        Table("Versions of models that change", columns, rows),
        Paragraph("What these runs left could not be asked:"),
        Listing(((Entry("<titanic> run <5>: <why>"),),)),
    ))  # fmt: skip
    assert serving_sections.models([changed(action="keep")], quote) == ReportSection("Models", ())


def test_endpoints_that_change_are_tables_with_metrics_side_by_side() -> None:
    change = endpoint(
        reach="public", metrics={"run 3": {"loss": 1, "auc": 0.5}, "run 4": {"loss": 2}}
    )
    gone = endpoint(name="old", action="delete", after={}, metrics={}, account="")
    found = serving_sections.endpoints([change, endpoint(action="keep"), gone], quote)
    columns = ("endpoint", "what happens", "split", "runs on", "a month", "reached", "acts as")
    machine = ("<1 to 2 x n1-standard-2 a version>",)
    rows = (
        Row((("<titanic>",), ("change",), ("<run 3: 100 → run 3: 90, run 4: 10>",), machine,
             ("$0.00 a month",), ("<public>",), ("<trainer>",))),
        Row((("<old>",), ("delete",), ("<run 3: 100 → nothing>",), machine,
             ("$0.00 a month",), ("<>",), ("<>",)), "destroys"),
    )  # fmt: skip
    measured = Table(
        "What was measured of endpoint <titanic>",
        ("metric", "<run 3> (100 % → 90 %)", "<run 4> (not deployed → 10 %)"),
        (Row((("<loss>",), ("1",), ("2",))), Row((("<auc>",), ("0.5",), ("",)))),
    )
    assert found == ReportSection("Endpoints", (
        Table("Endpoints that change", columns, rows),
        measured,
        Paragraph(
            "Endpoints are paid for while they are there, with or without traffic. Estimates: list "
            "prices, times Vertex AI's fee, for 730 hours. That endpoints pay this fee was "
            "observed for two machine types only. Network traffic and discounts are not in them."
        ),
    ))  # fmt: skip
    assert serving_sections.endpoints([endpoint(action="keep")], quote).parts == ()


def test_kinds_of_risk_have_their_words_and_their_question() -> None:
    kinds = {
        each.key: (each.headline, each.question, each.danger, each.answer)
        for each in (serving.DOUBTFUL, serving.OPENED, serving.ENDED, serving.DELETED,
                     serving.COSTLIER)
    }  # fmt: skip
    said = {
        "doubtfulTraffic": ("traffic to a version in doubt", "what runs", "opens"),
        "publicEndpoints": ("endpoint becomes public", "what becomes public", "destroys"),
        "endedEndpoints": ("endpoint with traffic ends", "what is lost", "destroys"),
        "deletedVersions": ("model version deleted", "what is lost", "destroys"),
        "costlierEndpoints": ("endpoints cost more a month", "what it can cost", "opens"),
    }
    assert kinds == {key: (*words, f"{words[0]}: {{}}") for key, words in said.items()}
    assert serving.ENDED.name(ServingRisk("n", "w"), quote) == "<n> (<w>)"
