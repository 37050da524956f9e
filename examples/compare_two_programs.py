"""Which of two programs is closer to the shipped copy model?"""

from rasplens.compare import compare
from rasplens.compile import compile_program
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task

task = get_task("copy")
learned = load_pretrained("copy")
for name, program in task.programs.items():
    reference = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    result = compare(reference, learned, task=task, n_inputs=200)
    matched = result.attention[result.attention["matched"]]
    print(f"{name}: agrees on {result.agreement:.3f} of the answers")
    print(matched[["variable", "similarity", "shuffled", "content"]].to_string(index=False))
