"""The claim of the example."""

from dumbbell.papers import Runs, Verdict, claim


@claim("long")
def gains_with_the_round_trip_time(runs: Runs) -> Verdict:
    short, long = (runs.value(f"pair-{rtt}", flow="cubic") for rtt in (10, 80))
    return Verdict(long > short, f"{short:.1f} Mbit/s at 10 ms, {long:.1f} Mbit/s at 80 ms.")
