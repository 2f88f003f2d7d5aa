"""The verbs and their completion in a shell.

==============  ======================================================================
``table``       the function of each verb, and what groups of verbs are about
``verbs``       commands made of the table; a module is imported when its verb is called
``completion``  names of stacks, jobs, images and buckets, completed in a shell
==============  ======================================================================
"""
