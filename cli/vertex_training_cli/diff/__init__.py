"""``vt diff``: what differs between two environments' settings and jobs, names aside."""
