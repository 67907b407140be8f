"""Verdicts in words: how many claims are confirmed, and what a paper's page says first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from dumbbell.papers.outcome import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.papers.outcome import Claim, Reproduction, VerdictName

MARKS: Final[dict[VerdictName, str]] = {
    "confirmed": "✓",
    "not confirmed": "≠",
    "inconclusive": "?",
    "not measured": "–",  # noqa: RUF001
}
"""The sign before each verdict, so that colour is not needed to tell verdicts apart."""


def tally(claims: Sequence[Claim]) -> str:
    """The simulator's verdicts: ``"4 of 6 claims confirmed, 1 not confirmed, 1 inconclusive"``."""
    counts = Counter(claim.simulated.verdict for claim in claims)
    others = [f"{counts[name]} {name}" for name in VERDICTS[1:] if counts[name]]
    noun = "claim" if len(claims) == 1 else "claims"
    return ", ".join([f"{counts['confirmed']} of {len(claims)} {noun} confirmed", *others])


def agreement(claims: Sequence[Claim]) -> str:
    """How many claims the runs on Linux decide, and how often as the simulator does; or nothing."""
    measured = [claim for claim in claims if claim.linux.verdict != "not measured"]
    decided = [claim for claim in measured if claim.linux.verdict != "inconclusive"]
    same = sum(claim.linux.verdict == claim.simulated.verdict for claim in decided)
    if not measured:
        return ""
    if not decided:
        return f"the few runs on Linux decide none of the {len(measured)} that were measured"
    return f"Linux decides {len(decided)} of them, {same} as the simulator does"


def headline(claims: Sequence[Claim]) -> str:
    """All claims in one line."""
    return "; ".join(filter(None, [tally(claims), agreement(claims)])) + "."


def answer(of: Reproduction) -> list[str]:
    """The answer of a paper's page, in one or two sentences.

    Where the simulator and Linux agree with each other and not with the paper, that comes first.
    """
    against = sum(claim.linux_disagrees_with_the_paper_too for claim in of.claims)
    if not against:
        return [*filter(None, [of.result]), headline(of.claims)]
    linux = f"Linux {of.linux.kernel}" if of.linux else "Linux"
    first = (
        f"The simulator and {linux} agree with each other, and not with the paper, on {against} of "
        f"{len(of.claims)} claims."
    )
    return [first, of.result or headline(of.claims)]


def confirmed_share(of: Reproduction) -> float:
    """The share (0 to 1) of a paper's claims that the simulator confirms; 0 without claims."""
    confirmed = sum(claim.simulated.verdict == "confirmed" for claim in of.claims)
    return confirmed / max(len(of.claims), 1)
