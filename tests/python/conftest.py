"""Settings of all tests."""

import os

from hypothesis import settings

# Hypothesis draws the same examples in every run: a commit passes always or never. `make explore`
# draws others. There is no deadline, as a busy machine is slow.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", database=None, deadline=None, print_blob=True)
# Runs are made, not looked up; the tests of the store have stores of their own.
os.environ["DUMBBELL_STORE"] = "off"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
