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


def test_what_one_service_alone_has_is_why_the_other_refuses_the_job() -> None:
    idle, _ = both(options={"idleStop": "5% for 30m"})
    assert idle.endswith("`not Batch: it has no idleStop`")
    told, _ = both(backend="batch", options={"notifications": [{"pubsubTopic": "t"}]})
    assert told == "`Batch $0.76 (4 attempts of 1 h)`<br>`not Vertex: it has no notifications`"
