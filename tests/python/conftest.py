"""Settings of all tests."""

from hypothesis import settings

# A machine that is busy is slow, and that is no failure.
settings.register_profile("dumbbell", deadline=None)
settings.load_profile("dumbbell")
