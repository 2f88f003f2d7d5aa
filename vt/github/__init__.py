"""``vt github``: comments, approvals and issues of workflows, through GitHub's own ``gh``."""
