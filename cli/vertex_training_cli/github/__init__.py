"""``vt github``: comments, approvals and issues of workflows, through GitHub's own ``gh``.

===================  ==============================================================
``command``          the command line
``preview_run``      the run of a preview, by what GitHub says of it
``artifact``         what that run uploaded, read without trust
``preview_comment``  the comment on a pull request, rendered of it
``kept_approval``    what merging approves, kept by the run that wrote the comment
``repository``       comments, approvals and issues of a repository
``gh``               calls of GitHub's API
===================  ==============================================================
"""
