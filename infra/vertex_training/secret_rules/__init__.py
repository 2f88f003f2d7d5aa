"""What looks like a secret, in any text: one set of rules, for rules of jobs, reports and scans.

=============  =======================================================================
``forms``      forms of well-known tokens, and what stands before a secret in a command
``names``      names whose value is a secret, and values that only refer to one
``redaction``  the secrets of a text, and the text without them
``files``      secrets in files that leave the machine, and which of them are allowed
=============  =======================================================================

Standard library only: the policy pack uses it in an environment of its own. The time that a text
takes grows with its length alone; ``tests/corpus/secrets`` has the shapes that are found.
"""
