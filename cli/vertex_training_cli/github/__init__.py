"""``vt github``: comments, approvals and issues of workflows, through GitHub's program ``gh``.

===============  ===================================================================
``command``      the command line
``preview_run``  the run of a preview, by what GitHub says of it, and its comment
``repository``   comments, approvals and issues of a repository; approvals are kept
``gh``           calls of GitHub's API, and artifacts of runs, read without trust
===============  ===================================================================
"""
