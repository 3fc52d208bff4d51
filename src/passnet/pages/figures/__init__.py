"""Plots and drawn graphs.

es_figure, styles         scores by tolerance
speed_figure              a net's speed by the error that is allowed
drawing, layout           a graph as a picture
study_page, profile_page  studies as paragraphs, tables and plots
inert_svg                 SVG files of strangers, as images that run nothing
"""
