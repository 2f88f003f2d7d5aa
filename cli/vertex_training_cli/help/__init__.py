"""Commands of ``vt``, and their completion in a shell.

==============  ======================================================================
``table``       the function of each verb, and the help of each group
``verbs``       commands from the table; a module is imported when its verb is called
``completion``  names of stacks, jobs, images, models and endpoints, for a shell
==============  ======================================================================
"""
