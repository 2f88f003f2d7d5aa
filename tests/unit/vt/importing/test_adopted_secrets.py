"""Secrets in variables of an imported job, the account that it runs as, and its network."""

from __future__ import annotations

from tests.unit.vt.importing.test_references import adopted, stack

NAMED = "{0} is a secret, and who sees a job sees its variables: it is now the name of secret "
NAMED += "'{1}', whose value the code reads (docs/job-files.md)"
FILLED = "{0} is a secret, and who sees a job sees its variables: it is now the value of secret "
FILLED += "'{1}', which Batch reads"


def test_a_variable_of_batch_is_filled_with_the_secret() -> None:
    made = adopted(stack(), {"env": [{"name": "API_KEY", "value": "hunter2"}]}, backend="batch")
    assert made.task == {"env": [{"name": "API_KEY", "value": "${secrets.api-key.value}"}]}
    assert made.remarks == [FILLED.format("API_KEY", "api-key")]


OTHER, SECOND = (f"projects/{name}-project/secrets" for name in ("other", "second"))
