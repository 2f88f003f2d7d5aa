"""`vt`: the command beside `pulumi`. It imports the pure modules of `infra`, never the reverse."""
