"""How `make site` turns the pages of docs/ into a site with search, by Sphinx.

The pages stay plain Markdown that GitHub shows as it is. A link to a file outside of docs/ becomes
a download of that file; a link to a page or heading that does not exist fails the build.
"""

project = "Vertex AI training, declared"
copyright = "the authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The folder is the checkout, so that a page may link to files outside of docs/.
include_patterns = ["docs/**", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
root_doc = "docs/site/index"
html_theme = "furo"
html_title = project
html_show_sphinx = False
# GitHub draws diagrams; here they stand as text, since their script would come from elsewhere.
suppress_warnings = ["misc.highlighting_failure"]
# Links name headings as GitHub does.
myst_heading_anchors = 4
# Signatures name types of Pulumi and Google, whose documentation is elsewhere.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
