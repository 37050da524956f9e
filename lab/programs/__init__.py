"""Rival programs, several algorithms for one task: each once, for all who set two of them against each other.

Four ways to answer recur. *Moving* copies the values of selected positions. *Looking* asks whether a selector
finds anything. *Counting* takes how much it selects. *Averaging* looks at nothing: a function of the means of
tokens' indicators gives the answer.
"""
