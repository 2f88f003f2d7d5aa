"""A training that can be preempted at any time, and goes on where it was."""
