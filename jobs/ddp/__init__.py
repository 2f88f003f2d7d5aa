"""Data-parallel training of a digit classifier that continues after the loss of a replica."""
