"""The figures of reports: every replicate, on log axes where zero is a category of its own and never a small number.

Each function takes plain values and returns a matplotlib Figure; `figure_files` turns it into bytes that are the same for the same
values, and `plot_data` into data that a page draws. Colours are Okabe and Ito's, legible on dark and light; text and axes of inlined
figures take the page's colour.
"""
