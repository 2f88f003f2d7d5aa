"""What looks like a secret, in any text: one set of rules, for rules of jobs and for reports.

=============  =======================================================================
``forms``      forms of well-known tokens, and what stands before a secret in a command
``names``      names whose value is a secret, and values that only refer to one
``redaction``  the secrets of a text, and the text without them
=============  =======================================================================

Standard library only: the policy pack uses it in an environment of its own. The time that a text
takes grows with its length alone; ``tests/corpus/secrets`` has the shapes that are found.
"""
