"""``vt github``: what workflows tell people, and what they ask, through GitHub's own ``gh``."""
