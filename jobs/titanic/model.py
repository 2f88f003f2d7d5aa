"""The network, and ``model.pt``, which contains the model and its preprocessing."""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import io
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from titanic.errors import JobError
from titanic.features import Columns, Preprocessing, transform
from titanic.portable import PortableModel

FORMAT = 1
THRESHOLD = 0.5


class SurvivalNet(nn.Module):
    """Multilayer perceptron with one output per passenger: the logit of survival."""

    def __init__(self, inputs: int, hidden: list[int], dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = inputs
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU(), nn.Dropout(dropout)]
            width = size
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))
        self.architecture = {"inputs": inputs, "hidden": list(hidden), "dropout": dropout}

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits for `features` (passengers x inputs)."""
        return self.layers(features).squeeze(-1)


@dataclass(frozen=True)
class Classifier:
    """Trained network with its preprocessing."""

    net: SurvivalNet
    preprocessing: Preprocessing

    def probabilities(self, columns: Columns) -> Tensor:
        """Return the probabilities of survival for raw columns (see ``titanic.data``)."""
        features = torch.from_numpy(transform(columns, self.preprocessing))
        device = next(self.net.parameters()).device
        self.net.eval()
        with torch.no_grad():
            return torch.sigmoid(self.net(features.to(device))).cpu()

    def dump(self) -> bytes:
        """Return the content of ``model.pt``: state_dict, architecture, preprocessing, names."""
        content = io.BytesIO()
        torch.save(
            {
                "format": FORMAT,
                "architecture": self.net.architecture,
                # On the CPU, so that a model trained on a GPU loads where there is none.
                "state_dict": {k: v.detach().cpu() for k, v in self.net.state_dict().items()},
                "feature_names": self.preprocessing.feature_names,
                "preprocessing": self.preprocessing.to_dict(),
                "threshold": THRESHOLD,
            },
            content,
        )
        return content.getvalue()

    def portable(self) -> PortableModel:
        """Convert to a model without PyTorch."""
        linear = [layer for layer in self.net.layers if isinstance(layer, nn.Linear)]
        layers = [
            (layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy())
            for layer in linear
        ]
        return PortableModel(layers, self.preprocessing)


def load(content: bytes) -> Classifier:
    """Load the classifier from the content of ``model.pt``, on the CPU.

    Raises:
        JobError: the file was written in another format.
    """
    saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if saved.get("format") != FORMAT:
        raise JobError(f"model.pt has format {saved.get('format')!r}, but this code reads {FORMAT}")
    net = SurvivalNet(**saved["architecture"])
    net.load_state_dict(saved["state_dict"])
    return Classifier(net, Preprocessing(**saved["preprocessing"]))
