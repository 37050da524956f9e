"""`python -m rasplens`."""

from rasplens.cli import main

main()
