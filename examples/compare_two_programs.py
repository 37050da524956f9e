"""Which of two programs does the shipped copy model implement?"""

from rasplens.compare import rank
from rasplens.compile import compile_program
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task

task = get_task("copy")
references = [
    compile_program(program, task.vocab, task.n_ctx, mask=task.visible) for program in task.programs.values()
]
ranking = rank(references, load_pretrained("copy"), task=task, config="quick")
print(ranking.verdict)
print(ranking.table.drop(columns=["task", "learned"]).round(2).to_string(index=False))
for comparison in ranking.comparisons:
    print(comparison.program, comparison.verdict, *comparison.verdict.reasons, sep="\n  ")
