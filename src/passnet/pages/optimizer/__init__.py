"""The page of an optimised net; its template and style are in the site.

page        the page, from the record and the judged passes
net_blocks  the blocks of the net, and the ops replaced in each
"""
