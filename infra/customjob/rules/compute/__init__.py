"""Rules about worker pools: machines, accelerators, scheduling, reduction servers."""
