"""``vt deploy``: deploys a plan only if it equals the approved plan."""
