"""Training with ZeRO-2: gradients and optimizer sharded over all processes, which all save."""
