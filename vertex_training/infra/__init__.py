"""The Pulumi program: what a training environment on Vertex AI is made of.

================  ==================================================================
``program``       the architecture on one page; start reading here
``environment``   what was declared, for what is declared beside it
``extra``         a team's own resources, ``extra.py`` of its repository
``stack``         a stack: settings, plans, references and packages, built once
``engine``        what a program asks of the Pulumi engine: its config, a plain end
``naming``        names and labels of everything, with their limits
``errors``        problems as values, and the tree of exceptions
``components``    one logical entity a module, its IAM inside
``stack_rules``   rules across the keys of a stack file
``plan``          what follows from settings: networks, reservations, grants
``images``        build contexts, and the identity of a build
``customjob``     the dynamic provider that submits CustomJobs
``settings``      what a stack file may say, and what reads it
``catalog``       facts about Google Cloud as data, each row with its source
``located_yaml``  YAML documents with the line and column of every value
================  ==================================================================

Each folder imports only those below it. ``components``, ``engine``, ``environment``,
``extra``, ``program`` and ``customjob``'s adapters load Pulumi or Google's clients; everything else
is pure.
"""
