"""Lines of a drawn figure, read back."""


def bold_lines(figure, label):
    """x and y of the bold line of a name, by panel title."""
    colour = dict(
        zip([text.get_text() for text in figure.legends[0].get_texts()], figure.legends[0].legend_handles, strict=True)
    )
    found = {}
    for panel in figure.axes:
        for line in panel.lines:
            if line.get_linewidth() == 2 and line.get_color() == colour[label].get_color():
                found[panel.get_title(loc="left")] = (line.get_xdata().tolist(), line.get_ydata().tolist())
    return found
