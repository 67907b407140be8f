"""What the keys of an experiment file can hold: types that check their values at once.

Quantities stay as they are written, with their units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator

from dumbbell import _core
from dumbbell.errors import ExperimentError
from dumbbell.experiment import impairments, units, user_code
from dumbbell.experiment.stacks import StackValue, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SEEDS: Final = 100_000
"""The greatest number of seeds in one experiment."""

TRANSPORTS: Final = ("tcp", "udt")
"""The transports that a flow can have."""

_GO_BY_REPORTS: Final = frozenset({"udt", "ar-udt"})


def needs_udt(cc: str) -> bool:
    """Whether an algorithm goes by what a UDT receiver reports, which TCP's does not."""
    return cc.partition("(")[0].strip() in _GO_BY_REPORTS


def _quantity(dimension: units.Dimension, *, zero: bool = False) -> BeforeValidator:
    def check(text: object) -> str | None:
        if text is None:
            return None
        dimension.parse(text, zero=zero)
        return str(text)

    return BeforeValidator(check)


def _opportunities(trace: object) -> None:
    # A file is read when the experiment is resolved, not whenever a link is made.
    if not isinstance(trace, str):
        impairments.parse_trace(trace)


def _check_queue(text: object) -> object:
    if text is not None:
        units.parse_queue(text)
    return text


def _check_algorithm(text: object) -> object:
    if isinstance(text, type):
        text = user_code.name_of(text)
    if isinstance(text, str):
        (user_code.check_name if user_code.is_custom(text) else _core.check_algorithm)(text)
    return text


def _check_scheduler(name: object) -> object:
    known = _core.schedulers()
    if isinstance(name, str) and name not in known:
        raise ValueError(unknown("scheduler", name, known))
    return name


def _check_name(text: object) -> object:
    if isinstance(text, str) and not (text.strip() == text != "" and text.isprintable()):
        raise ValueError(f'{units.shown(text)} is not a name; write printable text, such as "a"')
    return text


def _checked(parse: Callable[[object], object]) -> BeforeValidator:
    def check(value: object) -> object:
        if value is not None:
            parse(value)
        return value

    return BeforeValidator(check)


def check_seeds(seeds: object) -> object:
    """Raises `ValueError` unless `seeds` is a count of seeds, or a list of them."""
    valid = "write a count, such as 5, or a list of different whole numbers, such as [1, 2, 3]"
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= MOST_SEEDS:
        return seeds
    if isinstance(seeds, list) and 1 <= len(seeds) <= MOST_SEEDS:
        whole = all(type(seed) is int and 0 <= seed < 2**63 for seed in seeds)
        if whole and len(set(seeds)) == len(seeds):
            return seeds
    raise ValueError(f"{units.shown(seeds)} are not seeds; {valid}")


def _check_repeat(repeat: object) -> object:
    if type(repeat) is int and repeat < 1:
        raise ValueError(f"{repeat} is not a number of copies; write 1 or more")
    return repeat


def _check_transport(transport: object) -> object:
    if isinstance(transport, str) and transport not in TRANSPORTS:
        raise ValueError(unknown("transport", transport, list(TRANSPORTS)))
    return transport


def _check_options(options: object) -> object:
    for name, value in options.items() if isinstance(options, dict) else ():
        if not isinstance(value, bool | int | str):
            problem = f"{units.shown(value)} is not true, false, a whole number or text"
            raise ExperimentError(problem, key=f"[{units.shown(name)}]")
    return options


Name = Annotated[str, BeforeValidator(_check_name)]
Algorithm = Annotated[str, BeforeValidator(_check_algorithm)]
Scheduler = Annotated[str, BeforeValidator(_check_scheduler)]
Count = Annotated[int, BeforeValidator(_check_repeat)]
Rate = Annotated[str, _quantity(units.RATE)]
Time = Annotated[str, _quantity(units.TIME, zero=True)]
Period = Annotated[str, _quantity(units.TIME)]
Size = Annotated[str, _quantity(units.SIZE)]
QueueSize = Annotated[str, BeforeValidator(_check_queue)]
Loss = Annotated[float | str, BeforeValidator(impairments.parse_loss)]
Rates = Annotated[list[list[str]], _checked(impairments.parse_rates)]
Reroutes = Annotated[list[list[str]], _checked(impairments.parse_reroutes)]
Trace = Annotated[str | list[int], _checked(_opportunities)]
Aqm = Annotated[str, _checked(impairments.parse_aqm)]
Reordering = Annotated[str, _checked(impairments.parse_reorder)]
Transport = Annotated[str, BeforeValidator(_check_transport)]
Seeds = Annotated[int | list[int], BeforeValidator(check_seeds)]
StackOptions = Annotated[dict[str, StackValue], BeforeValidator(_check_options)]
