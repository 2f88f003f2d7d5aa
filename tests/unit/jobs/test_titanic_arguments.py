"""The command line of the job."""

from __future__ import annotations

import pytest
from titanic.arguments import parse_arguments

DATA = ["--train", "gs://b/train.npz", "--val", "gs://b/val.npz"]


@pytest.fixture(autouse=True)
def _as_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIP_MODEL_DIR", "gs://b/run/model/")


def test_values_arrive_as_numbers() -> None:
    args = parse_arguments([*DATA, "--epochs=5", "--learning-rate", "0.01", "--hidden=8,4"])
    assert (args.epochs, args.learning_rate, args.hidden) == (5, 0.01, [8, 4])


def test_a_run_with_nowhere_to_write_is_refused_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AIP_MODEL_DIR")
    with pytest.raises(SystemExit) as caught:
        parse_arguments(DATA)
    assert caught.value.code == 2
    assert "baseOutputDirectory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--epochs", "0"], "must be above 0, got 0"),
        (["--epochs", "ten"], "'ten' is not a whole number"),
        (["--learning-rate", "nan"], "must be above 0, got nan"),
        (["--learning-rate", "inf"], "must be a finite number, got inf"),
        (["--dropout", "1"], "must be below 1, got 1"),
        (["--hidden", "32,,16"], "'' is not a whole number"),
    ],
)
def test_wrong_usage_says_what_is_wrong_and_exits_with_2(
    wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments([*DATA, *wrong])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
