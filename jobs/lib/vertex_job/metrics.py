"""Metrics of a trial, for hyperparameter tuning, and use of the GPU.

Vertex AI reads a file of JSON lines in the form of the package cloudml-hypertune, which has had no
release since 2019: one line for each report, the last 100.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from vertex_job.errors import MetricError

_DEFAULT: Final = "/tmp/hypertune/output.metrics"
_KEPT: Final = 100
#: Dense bfloat16 peak in FLOP/s by the start of a GPU's name (NVIDIA's data sheets).
_PEAK: Final = {
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA A100": 312e12,
    "NVIDIA L4": 121e12,
}


def is_trial(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if this process belongs to a trial of a tuning job."""
    return "CLOUD_ML_TRIAL_ID" in environ


def report_metric(
    metric_id: str, value: float, step: int = 0, environ: Mapping[str, str] = os.environ
) -> None:
    """Report the value of a metric at a step. Raises MetricError for NaN and infinity."""
    if not math.isfinite(value):
        raise MetricError(
            f"metric {metric_id} is {value} at step {step}, which is not a finite number."
        )
    report = {"timestamp": time.time(), "trial": environ.get("CLOUD_ML_TRIAL_ID", "0")}
    report |= {metric_id: str(float(value)), "global_step": str(step), "checkpoint_path": ""}
    file = Path(environ.get("CLOUD_ML_HP_METRIC_FILE", _DEFAULT))
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text().splitlines() if file.exists() else []
    file.write_text("".join(f"{line}\n" for line in [*before[1 - _KEPT :], json.dumps(report)]))


class Gpu(Protocol):
    """The GPU of this process: ``TorchGpu``, or a stand-in."""

    @property
    def name(self) -> str:
        """Name, like ``NVIDIA H200``."""
        ...

    def utilization(self) -> float | None:
        """Part of the last moments in which it computed, from 0 to 1; None if unknown."""
        ...

    def peak_memory(self) -> int:
        """Most bytes of tensors at one time."""
        ...


class TorchGpu:
    """The current CUDA device of PyTorch. The utilization needs the package nvidia-ml-py."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda

    @classmethod
    def find(cls) -> TorchGpu | None:
        """Return the GPU that PyTorch uses; None without one."""
        import torch  # pyright: ignore[reportMissingImports]

        return cls(torch.cuda) if torch.cuda.is_available() else None

    @property
    def name(self) -> str:
        """Name, like ``NVIDIA H200``."""
        return self._cuda.get_device_name()

    def utilization(self) -> float | None:
        """Part of the last moments in which it computed, from 0 to 1; None if unknown."""
        try:
            return self._cuda.utilization() / 100
        except (ImportError, RuntimeError):  # no NVML
            return None

    def peak_memory(self) -> int:
        """Most bytes of tensors at one time."""
        return self._cuda.max_memory_allocated()


class GpuMeter:
    """Figures of the use of a GPU, for the log and ``metrics.json``."""

    def __init__(self, gpu: Gpu | None) -> None:
        self._gpu = gpu
        self._samples = list[float]()

    def figures(self, flops: float = 0.0) -> dict[str, float]:
        """Return the use of the GPU so far; empty without a GPU.

        ``gpu_utilization`` is the mean of the samples of all calls, ``peak_memory_gib`` the peak,
        and ``mfu`` (model FLOPs utilization) the part that ``flops`` a second are of the GPU's
        peak. A figure that is unknown is left out.
        """
        if self._gpu is None:
            return {}
        figures = {"peak_memory_gib": round(self._gpu.peak_memory() / 2**30, 2)}
        if (sample := self._gpu.utilization()) is not None:
            self._samples.append(sample)
        if self._samples:
            figures["gpu_utilization"] = round(math.fsum(self._samples) / len(self._samples), 4)
        peak = next((peak for name, peak in _PEAK.items() if self._gpu.name.startswith(name)), None)
        if flops and peak:
            figures["mfu"] = round(flops / peak, 4)
        return figures
