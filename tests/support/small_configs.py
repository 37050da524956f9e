"""Comparisons as small as their tests need."""

from dataclasses import replace

from rasplens.compare import CompareConfig

QUICK = CompareConfig(
    n_inputs=96,
    n_fitting=300,
    relevance_inputs=24,
    questions=100,
    questions_tried=1_000,
    interchange_pairs=50,
    das_steps=10,
    random_subspaces=3,
    head_answers=360,
    edge_answers=180,
    profile_permutations=199,
    bootstrap_draws=200,
    similarity_rows=200,
    enumerated=0,
)
"""As little of everything as the small models need."""

BRIEF = replace(
    QUICK,
    n_inputs=40,
    n_fitting=100,
    questions=40,
    questions_tried=160,
    interchange_pairs=20,
    das_steps=1,
    random_subspaces=1,
    head_answers=60,
    edge_answers=60,
    attention_permutations=3,
    profile_permutations=19,
    bootstrap_draws=50,
    similarity_rows=40,
)
"""Less than that, where the scores do not matter."""
