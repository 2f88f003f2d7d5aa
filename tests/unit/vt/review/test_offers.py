"""Both services in a review: the one that runs a job, then what the other one would take."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.review import json_report, markdown, report


def both(
    network: dict[str, Any] | None = None,
    backend: str = "",
    options: dict[str, Any] | None = None,
    **spec: Any,
) -> tuple[str, dict[str, Any]]:
    inputs = plans.job("a", **spec)
    inputs["options"] = {**inputs["options"], **(options or {})}
    if backend:
        inputs["submission"] = {**inputs["submission"], "backend": backend}
    config = {"gcp:project": "acme-ml-dev", "gcp:region": "us-central1"}
    if network:
        config["vertex-training:network"] = json.dumps(network)
    step = plans.create(plans.JOB, "training-a", **inputs)
    plan = events.parse(plans.lines(step, config=config), "dev")
    told = report.build(plan, source="")
    text = markdown.render(told)
    row = next(line for line in text.splitlines() if line.startswith("| `a` | submitted"))
    return row.split("|")[-2].strip(), json_report.document(told)["jobs"][0] | {"text": text}


def test_a_job_on_vertex_ai_says_what_batch_would_take() -> None:
    cell, found = both()
    assert cell == "`Vertex $0.22 (1 h)`<br>`or Batch $0.76 (4 attempts of 1 h)`"
    assert found["worstCaseUsd"] == found["offers"][0]["worstCaseUsd"]
    assert [each["backend"] for each in found["offers"]] == ["vertex", "batch"]
    assert [each["attempts"] for each in found["offers"]] == [1, 4]


def test_a_job_on_batch_says_what_vertex_ai_would_take() -> None:
    cell, found = both(backend="batch")
    assert cell == "`Batch $0.76 (4 attempts of 1 h)`<br>`or Vertex $0.22 (1 h)`"
    assert found["worstCaseUsd"] == found["offers"][0]["worstCaseUsd"]


def test_where_batch_refuses_the_job_the_reason_takes_the_place_of_the_figure() -> None:
    cell, found = both(tensorboard="projects/p/locations/r/tensorboards/1")
    assert cell == "`Vertex $0.22 (1 h)`<br>`not Batch: only Vertex AI has tensorboard`"
    assert found["offers"][1] == {
        "backend": "batch", "worstCaseUsd": None, "timeoutSeconds": None, "attempts": None,
        "refusal": "only Vertex AI has tensorboard",
    }  # fmt: skip


def test_what_one_service_alone_has_is_why_the_other_refuses_the_job() -> None:
    idle, _ = both(options={"idleStop": "5% for 30m"})
    assert idle.endswith("`not Batch: it has no idleStop`")
    told, _ = both(backend="batch", options={"notifications": [{"pubsubTopic": "t"}]})
    assert told == "`Batch $0.76 (4 attempts of 1 h)`<br>`not Vertex: it has no notifications`"


def test_the_stack_file_says_whether_the_subnet_of_an_attachment_is_known() -> None:
    interface = {"networkAttachment": "projects/p/regions/r/networkAttachments/n"}
    known, _ = both({"mode": "psc", "subnet": {}}, pscInterfaceConfig=interface)
    assert known.endswith("`not Batch: no subnet of this attachment is known`")
    known, _ = both({"mode": "psc", "subnet": {"range": "x"}}, pscInterfaceConfig=interface)
    assert "or Batch $0.76" in known


def test_thin_sources_are_named_where_a_job_needs_them() -> None:
    flex, spot = ({"timeout": "3600s", "strategy": each} for each in ("FLEX_START", "LOW_COST"))
    assert "concluded from a bill" not in both()[1]["text"]
    assert "it counts as on demand" in both(scheduling=flex)[1]["text"]
    assert "concluded from a bill" in both(scheduling=spot)[1]["text"]
