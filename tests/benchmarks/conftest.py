"""The benchmarks are no installed package: their folder is found from the root of the repository."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
