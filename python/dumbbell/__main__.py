"""`python -m dumbbell`: the command where its script is not on the path."""

from dumbbell.cli import main

main()
