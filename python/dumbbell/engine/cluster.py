"""Simulations on the workers of a Dask cluster.

They need the same build of dumbbell, and the files of algorithms of the user.
"""

from __future__ import annotations

import platform
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dumbbell.engine.simulation import engine, simulate
from dumbbell.errors import DumbbellError, ExperimentError
from dumbbell.experiment import user_code
from dumbbell.results.tables import RunOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

T = TypeVar("T")

_PATIENCE: Final = 30  # how long to wait for the first worker, s
_POLL_INTERVAL: Final = 0.2
"""How soon a thread that waits for a worker notices that the cluster is left, s."""


@dataclass(frozen=True)
class Cluster:
    """A connected cluster: what runs functions on its workers, and how many threads these have."""

    executor: Executor
    threads: int
    _is_left: Event = field(default_factory=Event)

    def simulate(
        self, scenario: str, algorithms: Iterable[str], sources: Mapping[str, str]
    ) -> RunOutput:
        """As `dumbbell.engine.simulation.simulate`, on a worker; packets are not recorded."""
        args = (scenario, list(algorithms), dict(sources))
        future = self.executor.submit(_simulate, engine(), *args)
        while not wait([future], _POLL_INTERVAL).done:
            if self._is_left.is_set():
                raise InterruptedError
        return result_of(future)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connects to the scheduler of a cluster."""
    try:
        from distributed import Client
    except ImportError:
        problem = "Dask needs the package distributed"
        raise DumbbellError(f"{problem}; install it with: pip install 'dumbbell[dask]'") from None
    try:
        client: Any = Client(address, timeout="5s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        problem = f'there is no scheduler at "{address}": {error}'
        advice = 'write its address, such as "tcp://10.0.0.1:8786"'
        raise ExperimentError(f"{problem}; {advice}", key="dask") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            problem = f'the scheduler at "{address}" has had no worker for {_PATIENCE} s'
            advice = f"start some: dask worker {address}"
            raise ExperimentError(f"{problem}; {advice}", key="dask") from None
        cluster = Cluster(client.get_executor(pure=False), sum(client.nthreads().values()) or 1)
        try:
            yield cluster
        finally:
            cluster._is_left.set()


def result_of(future: Future[T]) -> T:
    """What a worker returned; raises `DumbbellError` if the cluster lost it."""
    try:
        return future.result()
    except Exception as error:
        if isinstance(error, CancelledError) or type(error).__module__.startswith("distributed"):
            lost = f"the Dask cluster lost runs: {type(error).__name__}: {error}".rstrip(": ")
            again = "finished runs are kept; repeat the command once the cluster is available"
            raise DumbbellError(f"{lost}; {again}") from None
        raise


def check_build(built: str, here: str) -> None:
    """Raises `DumbbellError` unless the build of this process is the one that runs are for."""
    if built != here:
        problem = f"a worker has the build {here}, and the runs are for {built}"
        raise DumbbellError(f"{problem}; install the same build of dumbbell on both")


def check_sources(sources: Mapping[str, str]) -> None:
    """Raises `DumbbellError` unless this worker has the user's algorithms that runs are for.

    `sources` are those of a resolved experiment. A relative path is one from the folder in which
    the worker runs.
    """
    for name, digest in sources.items():
        try:
            why = "" if user_code.digest_here(name) == digest else "its content differs"
        except DumbbellError as error:
            why = str(error)
        if why:
            problem = f"the worker {platform.node()} has no or another {name.rpartition(':')[0]}"
            advice = "put the same file at the same path from the worker's own folder"
            raise DumbbellError(f"{problem} ({why}); {advice}")


def _simulate(built: str, scenario: str, used: list[str], sources: dict[str, str]) -> RunOutput:
    check_build(built, engine())
    check_sources(sources)
    return RunOutput.of(simulate(scenario, used, sources))
