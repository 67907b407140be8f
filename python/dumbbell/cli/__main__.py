"""``python -m dumbbell.cli``."""

from dumbbell.cli import main

main()
