"""``model`` of a job, and the peak of GPU memory in the training of this model.

The coefficients of AdamW were measured: a GPT on one H200 (143,771 MiB, torch 2.11), micro-batches
of 4 x 1024 tokens, 125M to 1.3B parameters. Six of seven peaks were within 1 % of the prediction,
one was 7 % above it. The tensors that ``jobs/transformer`` keeps for the backward pass, counted on
a processor, are 36.2 B a layer, token and unit of width, and 4.0 B with checkpointing. The other
parts follow these sources, and were not measured:

- 16 B a parameter after the backward pass, and its shares by ZeRO stage: Rajbhandari et al., ZeRO
  (https://arxiv.org/abs/1910.02054), section 3.1 and figure 1.
- Checkpointing keeps the input of each layer, float32 under ``torch.autocast``, and computes one
  layer again: Korthikanti et al. (https://arxiv.org/abs/2205.05198), table 2.
- State of the optimizers: two values of 4 B for AdamW, one for SGD with momentum, none for SGD.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from vertex_training.settings.section import Section

GIB: Final = 2**30
#: Part of the prediction by which a measured peak differed at most.
RANGE: Final = 0.07
#: Bytes of a parameter: weights with their 16-bit copies, gradients, and the optimizer's state.
#: ZeRO counts float32 weights as a part of that state.
WEIGHTS: Final = 2
MASTER: Final = 4
GRADIENTS: Final = 2
STATE: Final = {"adamw": 8, "momentum": 4, "sgd": 0}
#: Bytes of a layer for each token and unit of width, and of the loss for each token and level.
LAYER: Final = 36
LAYER_INPUT: Final = 4
LOSS: Final = 12


class TrainedModel(Section):
    """Sizes of the transformer that a job trains, to predict its peak of GPU memory."""

    parameters: int = Field(ge=1)
    """Number of parameters."""
    layers: int = Field(ge=1)
    """Number of layers."""
    width: int = Field(ge=1)
    """Width of the residual stream."""
    vocabulary: int = Field(ge=1)
    """Number of tokens that it distinguishes."""
    micro_batch: int = Field(ge=1)
    """Sequences that one GPU computes at once."""
    sequence: int = Field(ge=1)
    """Tokens of a sequence."""
    optimizer: Literal["adamw", "momentum", "sgd"] = "adamw"
    """``momentum`` is SGD with momentum."""
    zero_stage: int = Field(default=0, ge=0, le=3)
    """Parts that all GPUs of the job share: optimizer's state (1), also gradients (2), also weights
    (3)."""
    gradient_checkpointing: bool = False
    """Compute activations again in the backward pass."""

    def peak(self, gpus: int) -> float:
        """Return the predicted peak in GiB of one of ``gpus`` GPUs, if each runs one process."""
        tokens = self.micro_batch * self.sequence
        layers = LAYER * self.layers
        if self.gradient_checkpointing:
            layers = LAYER_INPUT * self.layers + LAYER
        activations = layers * tokens * self.width + LOSS * tokens * self.vocabulary
        weights = WEIGHTS / self._share(3, gpus)
        held = weights + (MASTER + STATE[self.optimizer]) / self._share(1, gpus)
        after = held + GRADIENTS / self._share(2, gpus)
        # Gradients replace activations in the backward pass.
        return max(held * self.parameters + activations, after * self.parameters) / GIB

    def _share(self, stage: int, gpus: int) -> int:
        """Return the number of GPUs among which a part is divided, from ZeRO ``stage`` on."""
        return gpus if self.zero_stage >= stage else 1

    def comparison(self, gpus: int, accelerator: str, memory: int) -> tuple[str, bool]:
        """Return a comparison of the peak with a GPU's memory, and whether the peak may not fit."""
        peak = self.peak(gpus)
        low, high = peak * (1 - RANGE), peak * (1 + RANGE)
        word = "fits into"
        if high > memory:
            word = "exceeds" if low > memory else "may exceed"
        text = f"predicted peak {peak:.1f} GiB ({low:.1f} to {high:.1f}) of a GPU"
        return f"{text} {word} the {memory} GB of {accelerator}", high > memory
