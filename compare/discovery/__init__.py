"""Methods that look for circuits or variables in a model, and their scores against the known truth."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
