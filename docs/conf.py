"""Sphinx configuration: prose in MyST, every code cell executed, every warning an error."""

from docutils import nodes

from dalembert import __version__

project = "dalembert"
author = "The dalembert developers"
project_copyright = "The dalembert developers"
release = __version__
version = release

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "jupyter_execute"]

html_theme = "furo"
html_title = f"dalembert {release}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]

# Formulas without the network: MathJax 3.2.2 (Apache 2.0) lies in _static. Version 4, the default, fetches its fonts.
mathjax_path = "mathjax/tex-svg.js"
mathjax_options = {"defer": "defer"}
mathjax3_config = {"options": {"enableMenu": False}}

myst_enable_extensions = ["amsmath", "dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Code cells run at every build; an exception, or a word on stderr, fails it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # the first run of a page compiles the loops it needs
nb_execution_show_tb = True
nb_output_stderr = "warn"
nb_merge_streams = True
nb_number_source_lines = False

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {"Array": "array"}
autosummary_generate = False
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_attr_annotations = False
default_role = "code"

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"


RAW = {}
"""Docstrings of properties, kept from napoleon, which would read "Basis of null(A^T): ..." as a type."""


def before_napoleon(app, what, name, obj, options, lines):
    """Keep |x| in a docstring an absolute value; reStructuredText would read a substitution."""
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("|", r"\|") for line in lines]
    if what == "property":
        RAW[name] = list(lines)


def after_napoleon(app, what, name, obj, options, lines):
    """Give a property its sentence back."""
    if what == "property":
        lines[:] = RAW.pop(name, lines)


TERMINAL = "%%terminal\n"
"""The magic of cells that hold lines of a terminal; a reader shall not copy it."""


def plain_terminals(app, doctree):
    """Show lines of a terminal as one types them."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if text.startswith(TERMINAL):
            block.children = [nodes.Text(text.removeprefix(TERMINAL))]
            block.rawsource, block["language"] = text.removeprefix(TERMINAL), "bash"


def setup(app):
    """Register the hooks around napoleon's own, which has priority 500."""
    app.connect("doctree-read", plain_terminals)
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", after_napoleon, priority=900)
