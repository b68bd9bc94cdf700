"""The documentation as a site: `python -m pip install -e '.[docs]' && sphinx-build docs docs/_site`."""

project = "gpudoctor"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "gpudoctor"
html_show_copyright = False
smartquotes = False  # commands and messages are copied
exclude_patterns = ["README.md", "_site"]
myst_heading_anchors = 3
myst_all_links_external = False
man_pages = [("commands", "gpudoctor", "find out why the GPU is not used, and which command fixes it", "", 1)]
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository; the tests check them
