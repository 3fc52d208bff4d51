"""Everything that a person reads of records: tables, figures, pages.

tables     tables on the terminal and in Markdown
figures    plots and drawn graphs
optimizer  the page of an optimised net
site       the folder of a static site, its templates and assets
"""
