"""Compression: compiled models whose known features are in superposition."""

from rasplens.learned.compressor.compress_model import compress, compress_many
from rasplens.learned.compressor.compressed_model import CompressedModel, load_compressed
from rasplens.learned.compressor.recipe import RECIPES, CompressionRecipe
from rasplens.learned.compressor.report import CompressionReport

__all__ = [
    "RECIPES",
    "CompressedModel",
    "CompressionRecipe",
    "CompressionReport",
    "compress",
    "compress_many",
    "load_compressed",
]
