"""Rules about a job in its stack: accounts, limits, network, reservations, other jobs."""
