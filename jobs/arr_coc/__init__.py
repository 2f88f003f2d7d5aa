"""Training with ZeRO-2: gradients and optimizer states are sharded over all processes."""
