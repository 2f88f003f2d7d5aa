"""Data-parallel training of a digit classifier that survives the loss of any replica."""
