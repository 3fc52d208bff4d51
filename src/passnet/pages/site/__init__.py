"""The parts that all pages share.

pages, text        pages from templates, and source with colours
templates, assets  Jinja templates, scripts and style
"""
