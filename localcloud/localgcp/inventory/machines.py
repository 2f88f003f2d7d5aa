"""Facts about machine types and GPUs that Compute Engine and Vertex AI act upon.

Source: doc:training/configure-compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: GPUs that machine types always have, so that no request needs to name them.
_BUILT_IN: Final[Mapping[str, Mapping[str, int]]] = {
    "NVIDIA_L4": {
        **{f"g2-standard-{vcpus}": 1 for vcpus in (4, 8, 12, 16, 32)},
        **{"g2-standard-24": 2, "g2-standard-48": 4, "g2-standard-96": 8},
    },
    "NVIDIA_RTX_PRO_6000": {f"g4-standard-{48 * gpus}": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_TESLA_A100": {
        **{f"a2-highgpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
        "a2-megagpu-16g": 16,
    },
    "NVIDIA_A100_80GB": {f"a2-ultragpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_H100_80GB": {f"a3-highgpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_H100_MEGA_80GB": {"a3-megagpu-8g": 8},
    "NVIDIA_H200_141GB": {"a3-ultragpu-8g": 8},
    "NVIDIA_B200": {"a4-highgpu-8g": 8},
    "NVIDIA_GB200": {"a4x-highgpu-4g": 4},
}
#: Accelerator and count, by machine type.
BUILT_IN_GPUS: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {name: (gpu, count) for gpu, types in _BUILT_IN.items() for name, count in types.items()}
)
#: Accelerators of jobs that cannot be peered with a VPC network.
WITHOUT_VPC_PEERING: Final = frozenset(
    {"NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200"}
)
