"""The transformer's configuration and shards: mistakes are named, batches depend on steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformer import data
from transformer.config import Config, ConfigError, read_config
from transformer.data import DataError, Series, made_up

from tests.fixture_project import sample


@pytest.mark.parametrize("file", ["cpu.yaml", "h100.yaml"])
def test_configuration_of_the_sample_is_accepted(file: str) -> None:
    config = read_config(str(sample("transformer") / file), data="/gcs/b/series")
    assert config.data == "/gcs/b/series"
    assert config.batch % config.microBatch == 0


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "layer: 2\nsteps: ten",
            ["`layer` is unknown; the keys are layers, ", "`steps` must be int"],
        ),
        ("width: 100\nheads: 3", ["`width` 100 must be a multiple of `heads` 3"]),
        ("attention: fast\nprecision: fp8", ["one of bfloat16, float32", "one of auto, cudnn"]),
        (
            "batch: 0\nlearningRate: .nan",
            ["`batch` must be above 0", "`learningRate` must be above"],
        ),
        ("compile: 1\nsteps: true", ["`compile` must be bool", "`steps` must be int, got True"]),
        ("vocabulary: 100000", ["`vocabulary` must be at most 65536"]),
        ("- layers", ["must be a map"]),
        ("a: !!python/object/apply:os.getcwd []", ["is not YAML"]),
        ("a: [", ["is not YAML"]),
    ],
)
def test_every_mistake_of_a_configuration_is_named(
    text: str, messages: list[str], tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError) as failed:
        read_config(str(tmp_path / "c.yaml"))
    assert [part for part in messages if part not in str(failed.value)] == []


def test_batch_depends_on_the_step_alone(tmp_path: Path) -> None:
    data.main(
        ["--out", str(tmp_path), "--shards=2", "--series=4", "--length=50", "--vocabulary=32"]
    )
    series = Series.open(str(tmp_path), 16, 32)
    whole = series.batch(7, 6, 0, 1)
    assert whole.shape == (6, 17)
    assert not np.array_equal(whole, series.batch(8, 6, 0, 1))
    parts = [Series.open(str(tmp_path), 16, 32).batch(7, 6, rank, 3) for rank in range(3)]
    assert all(np.array_equal(whole[rank::3], part) for rank, part in enumerate(parts))


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (None, "has no .npy files"),
        (b"not numpy", "cannot be read"),
        (np.array([{"a": 1}], dtype=object), "cannot be read: "),
        (
            np.zeros((2, 50), np.int64),
            "must be uint16 with shape series x tokens, but is int64, 2 x 50",
        ),
        (np.zeros(50, np.uint16), "must be uint16"),
        (np.zeros((0, 50), np.uint16), "must be uint16"),
        (np.zeros((2, 16), np.uint16), "reduce context"),
    ],
)
def test_shard_of_another_shape_is_refused(shard: object, message: str, tmp_path: Path) -> None:
    if isinstance(shard, bytes):
        (tmp_path / "s.npy").write_bytes(shard)
    elif shard is not None:
        np.save(tmp_path / "s.npy", shard, allow_pickle=True)
    with pytest.raises(DataError, match=message):
        Series.open(str(tmp_path), 16, 32)


def test_level_above_the_vocabulary_is_refused() -> None:
    shard = np.full((1, 50), 32, np.uint16)
    with pytest.raises(DataError, match="has level 32, but vocabulary is 32"):
        Series([shard], 16, 32).batch(0, 2, 0, 1)


def test_made_up_series_use_the_levels() -> None:
    levels = made_up(8, 500, 64)
    assert levels.shape == (8, 500)
    assert (levels.min() < 16, levels.max() > 48, levels.max() < 64) == (True, True, True)
    assert Config().vocabulary <= 1 << 16
