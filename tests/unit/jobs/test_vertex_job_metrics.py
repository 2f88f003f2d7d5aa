"""Reports of the library for jobs, as the local cloud reads them and as Google's package would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vertex_job.errors import MetricError
from vertex_job.metrics import GpuMeter, TorchGpu, is_trial, report_metric


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "CLOUD_ML_TRIAL_ID": "7",
        "CLOUD_ML_HP_METRIC_FILE": str(tmp_path / "made" / "output.metrics"),
    }


def test_a_report_has_the_keys_of_googles_package(environ: dict[str, str]) -> None:
    assert is_trial(environ)
    assert not is_trial({})
    report_metric("accuracy", 0.5, 3, environ)
    line = json.loads(Path(environ["CLOUD_ML_HP_METRIC_FILE"]).read_text())
    assert line.pop("timestamp") > 0
    assert line == {"trial": "7", "accuracy": "0.5", "global_step": "3", "checkpoint_path": ""}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_value_that_is_no_number_ends_the_trial(environ: dict[str, str], value: float) -> None:
    with pytest.raises(MetricError, match=r"accuracy is (nan|inf) at step 9"):
        report_metric("accuracy", value, 9, environ)
    assert not Path(environ["CLOUD_ML_HP_METRIC_FILE"]).exists()


class Cuda:
    """Stands in for ``torch.cuda``."""

    def __init__(self, name: str, *percents: int | Exception) -> None:
        self._name, self._percents = name, iter(percents)

    def get_device_name(self) -> str:
        return self._name

    def utilization(self) -> int:
        percent = next(self._percents)
        if isinstance(percent, Exception):
            raise percent
        return percent

    def max_memory_allocated(self) -> int:
        return 3 << 29


def test_use_of_a_gpu_is_reported_with_its_share_of_the_peak() -> None:
    meter = GpuMeter(TorchGpu(Cuda("NVIDIA H200", 90, 70)))
    first = {"peak_memory_gib": 1.5, "gpu_utilization": 0.9, "mfu": 0.5561}
    assert meter.figures(550e12) == first
    assert meter.figures() == {"peak_memory_gib": 1.5, "gpu_utilization": 0.8}


def test_unknown_figures_are_left_out() -> None:
    no_nvml = (ModuleNotFoundError("pynvml"), RuntimeError("driver"), 40)
    meter = GpuMeter(TorchGpu(Cuda("NVIDIA Future", *no_nvml)))
    assert meter.figures(1e12) == {"peak_memory_gib": 1.5}
    assert meter.figures(1e12) == {"peak_memory_gib": 1.5}
    assert meter.figures(1e12) == {"peak_memory_gib": 1.5, "gpu_utilization": 0.4}
    assert GpuMeter(None).figures(1e12) == {}
