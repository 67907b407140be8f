"""Dossiers: the evidence on a congestion control algorithm that RFC 9743 (BCP 133) asks for."""

from dumbbell.dossier.evaluation import evaluate
from dumbbell.dossier.outcome import Dossier

__all__ = ["Dossier", "evaluate"]
