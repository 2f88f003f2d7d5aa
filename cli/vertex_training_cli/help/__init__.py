"""What a person meets before a command does anything: examples in the help, and completion.

==============  ======================================================================
``examples``    examples of each command, shown at the end of its help
``completion``  names of stacks, jobs, images and buckets, completed in a shell
==============  ======================================================================
"""
