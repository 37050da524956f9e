"""Any RASP program as a task: train a small transformer on it and see how well it does."""

from rasplens.compile import rasp
from rasplens.learned import Architecture, Recipe, train
from rasplens.tasks import task_from_program

first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == 0), rasp.tokens)
repeats_first = rasp.SequenceMap(lambda token, start: token == start, rasp.tokens, first).named("repeats_first")

task = task_from_program(repeats_first, vocab=["a", "b", "c"], max_len=6, causal=True)
architecture = Architecture(n_layers=1, n_heads=2, d_model=32, d_head=16)
recipe = Recipe(architecture, batch_size=128, steps=300, learning_rate=5e-3, weight_decay=0.01, warmup=20)
model = train(task, recipe, progress=lambda report: print(f"step {report.step}: {report.token:.3f}"))
print(f"held out: {task.accuracy(model)}")
