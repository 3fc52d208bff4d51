"""Plots and drawn graphs.

es_figure, styles         scores by tolerance
drawing, layout           a graph as a picture
study_page, profile_page  studies as paragraphs, tables and plots
inert_svg                 SVG files of strangers, as images that run nothing
"""
