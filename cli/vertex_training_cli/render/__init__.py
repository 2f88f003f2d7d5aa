"""``vt render``: the request a job file becomes in a stack, byte for byte."""
