"""Predicted peaks of GPU memory beside those that were measured on one H200 (torch 2.11)."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.settings.limits import RANGE, TrainedModel

#: Parameters, layers and width; GiB measured with AdamW under autocast, and with ZeRO-2 in bfloat16
#: by one process.
MEASURED = [
    (136_877_568, 12, 768, (4.58, 4.90)),
    (371_296_256, 24, 1024, (9.68, 9.79)),
    (783_436_800, 24, 1536, (16.78, 16.70)),
    (1_346_572_288, 24, 2048, (25.73,)),
]
SMALL = {"parameters": 2**30, "layers": 2, "width": 1024, "vocabulary": 1024}
ONE = {**SMALL, "microBatch": 1, "sequence": 1024}


@pytest.mark.parametrize(("parameters", "layers", "width", "peaks"), MEASURED)
def test_measured_peaks_are_within_the_range(
    parameters: int, layers: int, width: int, peaks: tuple[float, ...]
) -> None:
    sizes = {"parameters": parameters, "layers": layers, "width": width, "vocabulary": 32768}
    peak = TrainedModel.model_validate({**sizes, "microBatch": 4, "sequence": 1024}).peak(1)
    assert [measured for measured in peaks if abs(measured / peak - 1) > RANGE + 0.01] == []
    assert abs(peaks[0] / peak - 1) < 0.01


@pytest.mark.parametrize(
    ("options", "gpus", "bytes_a_parameter"),
    [
        ({}, 1, 16),
        ({"optimizer": "momentum"}, 1, 12),
        ({"optimizer": "sgd"}, 1, 8),
        ({"zeroStage": 1}, 1, 16),
        ({}, 4, 16),
        ({"zeroStage": 1}, 4, 2 + 12 / 4 + 2),
        ({"zeroStage": 2}, 4, 2 + 12 / 4 + 2 / 4),
        ({"zeroStage": 3}, 4, 16 / 4),
        ({"zeroStage": 3, "optimizer": "sgd"}, 4, 8 / 4),
    ],
)
def test_states_of_a_large_model_are_shared_by_stage(
    options: dict[str, Any], gpus: int, bytes_a_parameter: float
) -> None:
    large = {**ONE, "sequence": 1, **options}
    peak = TrainedModel.model_validate(large).peak(gpus)
    assert peak == pytest.approx(bytes_a_parameter, abs=0.001)


def test_checkpointing_keeps_the_input_of_each_layer() -> None:
    def activations(**options: Any) -> float:
        deep = {**ONE, "parameters": 1, "layers": 100, "sequence": 2**20, **options}
        return TrainedModel.model_validate(deep).peak(1)

    assert activations() == pytest.approx(36 * 100 + 12, rel=0.001)
    assert activations(gradientCheckpointing=True) == pytest.approx(4 * 100 + 36 + 12, rel=0.001)
