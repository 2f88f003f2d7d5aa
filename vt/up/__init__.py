"""`vt up`: `pulumi up`, with what a killed run left behind put in order before and after it."""
