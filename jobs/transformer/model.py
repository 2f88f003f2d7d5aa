"""GPT over levels of a time series, and the choice of its attention kernel."""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.config import Config, ConfigError

SEED = 17
#: In the order of their speed on H100 and H200.
KERNELS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


class Block(nn.Module):
    """Transformer block with attention and a feed-forward layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the block to an N x T x width tensor."""
        n, t, width = x.shape
        heads = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    """Model that predicts the next level of a series from the previous levels."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of samples (N x T + 1), predicting each token after the first."""
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.tokens(inputs) + self.places.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        levels = self.head(self.norm(x)).flatten(0, 1)
        return functional.cross_entropy(levels.float(), targets.flatten())


def new_model(config: Config) -> Transformer:
    """Return a model with the same weights on every rank and at every start."""
    torch.manual_seed(SEED)
    model = Transformer(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            nn.init.normal_(weights, std=0.02)
    return model


def choose_attention(config: Config, device: torch.device, dtype: torch.dtype) -> str:
    """Return the configured kernel, or the fastest kernel that works on this machine.

    Raises ConfigError if the configured one does not work.
    """
    reason = ""
    shape = (1, config.heads, min(config.context, 128), config.width // config.heads)
    for name, kernel in KERNELS.items():
        if config.attention not in ("auto", name):
            continue
        try:
            with sdpa_kernel(kernel):
                x = torch.randn(shape, device=device, dtype=dtype, requires_grad=True)
                functional.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
            return name
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
    raise ConfigError(f"attention {config.attention!r} does not work on this machine: {reason}")


def attention(name: str) -> sdpa_kernel:
    """Return a context manager that runs attention with this kernel."""
    return sdpa_kernel(KERNELS[name])


def flops_per_token(config: Config, parameters: int) -> float:
    """Return FLOPs per token: 6 per parameter, plus attention (PaLM, appendix B)."""
    return 6.0 * parameters + 12.0 * config.layers * config.width * config.context
