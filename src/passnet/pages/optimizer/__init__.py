"""The page of an optimised net.

page, page_style, page_text  the page and its style
page_blocks, replaced        the net's blocks, and the ops replaced in each
page_passes                  ranges, trials and sources of passes
"""
