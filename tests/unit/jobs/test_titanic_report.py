"""metrics.json, eval_history.csv and training.log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from titanic.joblog import JobLog
from titanic.report import Epoch, best_epoch, history_csv, metrics_json

HISTORY = [Epoch(1, 0.7, 0.6, 0.5), Epoch(2, 0.5, 0.4, 0.8), Epoch(3, 0.4, 0.4, 0.9)]


@pytest.fixture
def _logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_the_first_epoch_with_the_lowest_validation_loss_is_the_best() -> None:
    assert best_epoch(HISTORY).number == 2


def test_a_metric_that_is_no_number_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        metrics_json({"validation_loss": float("nan")}, {})


def test_the_history_has_one_line_an_epoch_at_full_precision() -> None:
    lines = history_csv([Epoch(1, 0.1 + 0.2, 0.6, 0.5)]).decode().splitlines()
    assert lines == [
        "epoch,train_loss,validation_loss,validation_accuracy",
        "1,0.30000000000000004,0.6,0.5",
    ]


@pytest.mark.usefixtures("_logging_restored")
def test_log_keeps_all_and_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    job_log = JobLog()
    logging.getLogger("titanic").info("epoch 1")
    logging.getLogger("titanic").error("no such object")
    captured = capsys.readouterr()
    assert captured.out == "INFO epoch 1\n"
    assert captured.err == "ERROR no such object\n"
    kept = job_log.content().decode().splitlines()
    assert [line.split(" ", 2)[2] for line in kept] == ["INFO epoch 1", "ERROR no such object"]
