"""Compression: compiled models whose known features are in superposition."""

from rasplens.compile.compression.compressed import CompressedModel, load_compressed
from rasplens.compile.compression.compressor import compress
from rasplens.compile.compression.recipe import RECIPES, CompressionRecipe
from rasplens.compile.compression.report import CompressionReport

__all__ = ["RECIPES", "CompressedModel", "CompressionRecipe", "CompressionReport", "compress", "load_compressed"]
