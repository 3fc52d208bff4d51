"""The parts that all pages share.

pages, text        the folder of a site, its templates and safe text
templates, assets  Jinja templates, scripts and style
"""
