"""What a person meets before a command does anything: verbs, examples, and completion.

==============  ======================================================================
``verbs``       the function of each verb, imported when the verb is called
``examples``    examples of each command, shown at the end of its help
``completion``  names of stacks, jobs, images and buckets, completed in a shell
==============  ======================================================================
"""
