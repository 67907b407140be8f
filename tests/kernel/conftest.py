"""Runs with real packets are measured, not looked up in the store."""

import os

os.environ["DUMBBELL_STORE"] = "off"
