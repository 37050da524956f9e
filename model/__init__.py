"""The transformer that both sides produce: its config, its weights, how it runs and how it is stored."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
