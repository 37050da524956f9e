"""A learned model held against compiled ones: a program's claims, tested by intervention, and a verdict."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
