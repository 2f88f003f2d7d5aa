"""Configuration file of a training, in YAML."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import yaml
from vertex_job.stores import store_at

_ATTENTION = ("auto", "cudnn", "flash", "efficient", "math")
_PRECISION = ("bfloat16", "float32")


class ConfigError(Exception):
    """The configuration is invalid; the message names the key."""


@dataclass(frozen=True)
class Config:
    """Configuration of model and training. ``context`` is in tokens, ``batch`` in series."""

    layers: int = 12
    heads: int = 12
    width: int = 768
    """Of the residual stream: a multiple of ``heads``."""
    context: int = 1024
    """Tokens of one sample."""
    vocabulary: int = 1024
    """Levels that values are rounded to; at most 65,536."""
    steps: int = 1000
    batch: int = 32
    """Samples of one step, of all processes together."""
    microBatch: int = 4
    """Samples that one process computes at once; gradients are accumulated."""
    learningRate: float = 3e-4
    """The highest; it rises in ``warmup`` steps and falls as a cosine to a tenth."""
    warmup: int = 100
    weightDecay: float = 0.1
    precision: str = "bfloat16"
    """Of matrix products: bfloat16 or float32. Weights are float32."""
    attention: str = "auto"
    """Kernel: auto (the first of the others that works here), cudnn, flash, efficient or math."""
    compile: bool = False
    """Compile the model with torch.compile."""
    compileCache: str = ""
    """A folder on a local disk that keeps compiled kernels."""
    shardOptimizer: bool = False
    """Each process keeps a part of the optimizer's state (ZeRO stage 1)."""
    checkpointEvery: int = 500
    logEvery: int = 10
    data: str = ""
    """A folder of shards (``transformer.data``), or nothing: series are made up in memory."""


def read_config(uri: str, **overrides: str) -> Config:
    """Read a configuration from ``gs://``, ``/gcs`` or a path.

    Raises:
        ConfigError: all mistakes, one a line.
        StoreError: it cannot be read.
    """
    folder, slash, name = uri.rpartition("/")
    try:
        document = yaml.safe_load(store_at(folder or slash or ".").read(name).decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{uri} is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{uri} must be a map, for example `layers: 12`")
    document |= {key: value for key, value in overrides.items() if value}
    if mistakes := _mistakes(document):
        raise ConfigError("\n".join(f"{uri}: {mistake}" for mistake in mistakes))
    return Config(**document)


def _mistakes(document: dict[Any, Any]) -> list[str]:
    known = {field.name: type(field.default) for field in fields(Config)}
    mistakes = [
        f"`{key}` is unknown; the keys are {', '.join(known)}"
        for key in document
        if key not in known
    ]
    for key, kind in known.items():
        value = document.get(key, getattr(Config, key))
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = document[key] = float(value)
        if type(value) is not kind:
            mistakes.append(f"`{key}` must be {kind.__name__}, got {value!r}")
        elif (
            kind in (int, float)
            and not (0 if key in ("warmup", "weightDecay") else 1e-12) <= value < 1e12
        ):
            mistakes.append(f"`{key}` must be above 0, got {value!r}")
    if mistakes:
        return mistakes
    config = Config(**document)
    if config.width % config.heads:
        mistakes.append(f"`width` {config.width} must be a multiple of `heads` {config.heads}")
    if config.vocabulary > 1 << 16:
        mistakes.append(f"`vocabulary` must be at most 65536, got {config.vocabulary}")
    for key, allowed in (("precision", _PRECISION), ("attention", _ATTENTION)):
        if (value := getattr(config, key)) not in allowed:
            mistakes.append(f"`{key}` must be one of {', '.join(allowed)}, got {value!r}")
    return mistakes
