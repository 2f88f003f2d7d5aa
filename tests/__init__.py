"""A package, so that the one a dependency installs under the same name is not found first.

Tests that need a container engine, a client or a host of a language skip where one is missing.

===================  ====================================================================
``unit``             mirrors the product; no engine, no network
``security``         one test an attack, a file a subject
``chaos``            submissions under every interleaving, and with each step left out
``mutants``         ``make mutants``: random changes of product code, run against the tests
``contract``         the local cloud beside Google's own descriptions of its methods
``golden``           previews of each stack, and reviews of scripted changes
``policy``           each policy against right and wrong resources
``teams``            stories of several teams in one stack; wrong stack files
``e2e``              the real engine against the local stack
``languages``        components in Python, TypeScript and YAML programs
``clients``          programs of others, unchanged in the local shell
``containers``       the real registry and a real builder
``browser``          the review page in Chromium; pages that attack the local cloud
``corpus``           right and wrong job files, with the rules they break
``fixtures``         recorded inputs; states that earlier versions wrote
``fixture_project``  the stacks that tests stand on: those at the top are samples
``extra_page``       the code of docs/components.md
``warehouse``        the local cloud's BigQuery, for several of them
===================  ====================================================================
"""
