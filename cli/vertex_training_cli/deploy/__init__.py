"""``vt deploy``: what was approved is deployed, and nothing else."""
