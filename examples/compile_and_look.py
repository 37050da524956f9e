"""Compile a program, verify it on every input, and find its variables in the residual stream."""

import numpy as np
import torch

from rasplens.compile import compile_program, rasp, verify
from rasplens.model import HookedModel

smaller = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.LT)
target = rasp.SelectorWidth(smaller).named("target_pos")
here = rasp.Select(target, rasp.indices, rasp.Comparison.EQ)
sort_unique = rasp.Aggregate(here, rasp.tokens).named("sort_unique")

compiled = compile_program(sort_unique, vocab=[1, 2, 3, 4], max_len=4)
assert compiled([3, 1, 4]) == [1, 3, 4]
print(verify(compiled, inputs=[[3, 1, 4], [2], [4, 3, 2, 1]]))

for (layer, head), variable in compiled.heads.items():
    print(f"L{layer}H{head} computes {variable}")

# The known direction of a variable, read by hand from a TransformerLens cache.
variable = compiled.variables["target_pos"]
ids = torch.tensor(compiled.encode([[3, 1, 4]]))
_, cache = HookedModel(compiled.transformer).run_with_cache(ids)
onehot = variable.read(cache[variable.written_at][0, compiled.offset :].numpy())
print("target_pos:", [variable.values[code] for code in np.argmax(onehot, axis=1)])
