"""The figures of a comparison, as plotly's: shown in a notebook, or written as HTML, SVG or PNG.

Example:
    >>> figures(result)["claims"].show()
    >>> attention_figure(result, "BOS a b a b").write_html("attention.html")
"""

from rasplens.compare.report.figures.attention import attention_figure
from rasplens.compare.report.figures.every_figure import figures

__all__ = ["attention_figure", "figures"]
