"""One simulation in this thread, with custom algorithms that another thread can interrupt."""

from __future__ import annotations

import ctypes
import hashlib
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.errors import DumbbellError
from dumbbell.experiment import user_code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from types import TracebackType

_NOTICE: Final = 0.2  # a simulation ends by itself within this time after it was stopped, s
_PATIENCE: Final = 0.6  # threads that have not ended after this time are left alone, s

_threads: Final[dict[int, _core.RunMonitor]] = {}
"""The threads that run custom algorithms, and the monitors of their simulations."""

_lock: Final = Lock()


@cache
def engine() -> str:
    """The simulator's version, and a hash of the extension module as it was built."""
    built = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return f"{_core.__version__}-{built[:16]}"


def simulate(
    scenario: str,
    algorithms: Iterable[str],
    sources: Mapping[str, str],
    monitor: _core.RunMonitor | None = None,
) -> _core.RunOutput:
    """Runs a scenario (JSON) in this thread; its `sources` are those of a resolved experiment.

    Raises:
        _core.ScenarioError: If the scenario cannot be simulated.
        DumbbellError: If a custom algorithm cannot be loaded, or ends the process.
        InterruptedError: If `monitor` was stopped.
        KeyboardInterrupt: If `stop_all` interrupted a custom algorithm.
        Exception: Any other exception of a custom algorithm.
    """
    custom = user_code.classes(algorithms, sources)
    if not custom:
        return _core.simulate(scenario, monitor)
    monitor = monitor or _core.RunMonitor()
    try:
        with _lock:
            _threads[get_ident()] = monitor
        return _core.simulate(scenario, monitor, custom)
    except SystemExit as error:
        where = "".join(f", {note}" for note in getattr(error, "__notes__", []))
        problem = f"a custom algorithm raised SystemExit({error.code!r}){where}"
        raise DumbbellError(f"{problem}; let it raise another exception") from None
    finally:
        with _lock:
            _threads.pop(get_ident(), None)


@contextmanager
def thread_pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for simulations; after an exception those that do not end are not waited for."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def stop_all(futures: Collection[Future[Any]], monitors: Iterable[object]) -> None:
    """Waits for simulations that were stopped; raises KeyboardInterrupt in those that go on.

    A custom algorithm with an endless loop never returns to its simulation. A thread in a call that
    Python cannot interrupt is left alone.
    """
    began, current = time.monotonic(), set(map(id, monitors))
    left = wait([one for one in futures if not one.cancelled()], _NOTICE).not_done
    while left and time.monotonic() - began < _PATIENCE:
        with _lock:
            for thread, monitor in _threads.items():
                if id(monitor) in current:
                    ident, error = ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
        left = wait(left, _NOTICE / 4).not_done


def is_raised_in_simulation(error: BaseException) -> bool:
    """Whether `error` passed through `simulate`: a custom algorithm raised it."""
    return _below_simulate(error) is not None


def custom_traceback(error: BaseException) -> TracebackType | None:
    """The traceback below `simulate`: the frames of the custom algorithm that raised `error`.

    None if `error` did not pass through `simulate`.
    """
    part = _below_simulate(error)
    return part and part.tb_next


def _below_simulate(error: BaseException) -> TracebackType | None:
    """The traceback from the frame of `simulate` on."""
    part = error.__traceback__
    while part is not None and part.tb_frame.f_code is not simulate.__code__:
        part = part.tb_next
    return part
