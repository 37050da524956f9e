"""Programs that say what they compute, in the words of the function that builds them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from rasplens.compile.rasp.language import SOp, annotate

P = ParamSpec("P")


def described(build: Callable[P, SOp]) -> Callable[P, SOp]:
    """A decorator: the program that a function builds is annotated with what it is `about`.

    Example:
        >>> from rasplens.compile.rasp import indices
        >>> @described
        ... def where_am_i():
        ...     '''The position of each token.'''
        ...     return indices + 0
        >>> where_am_i().annotations["about"]
        'The position of each token.'
    """
    about = " ".join((inspect.getdoc(build) or "").partition("\n\n")[0].split())

    @wraps(build)
    def built(*args: P.args, **options: P.kwargs) -> SOp:
        return annotate(build(*args, **options), about=about)

    return built
