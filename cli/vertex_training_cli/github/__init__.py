"""``vt github``: comments, approvals and issues of workflows, through GitHub's program ``gh``.

===============  ===================================================================
``command``      the command line
``preview_run``  the run of a preview, with values from GitHub's API, and its comment
``repository``   comments, approvals and issues of a repository
``gh``           calls of GitHub's API; artifacts of runs, which are not trusted
===============  ===================================================================
"""
