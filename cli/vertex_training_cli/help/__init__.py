"""What a person meets before a command does anything: verbs, examples, and completion.

==============  ======================================================================
``table``       each verb: its function, and the examples of its help
``verbs``       commands made of the table; a module is imported when its verb is called
``completion``  names of stacks, jobs, images and buckets, completed in a shell
==============  ======================================================================
"""
