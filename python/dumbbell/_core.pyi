from collections.abc import Callable
from os import PathLike
from typing import Final, Literal, TypedDict, final, type_check_only

__all__ = [
    "Capture",
    "Outcome",
    "Table",
    "Watch",
    "__version__",
    "algorithms",
    "check_algorithm",
    "check_stack",
    "check_udt_options",
    "die_with_parent",
    "isolate",
    "run_testbed",
    "schedulers",
    "simulate",
    "stacks",
    "udt_options",
]

__version__: Final[str]

@type_check_only
class Meta(TypedDict):
    data_packets: int
    events: int
    version: str

@type_check_only
class Health(TypedDict):
    late_mean_s: float | None
    late_p99_s: float | None
    late_max_s: float
    device_drops: int
    refused: int
    steal: float
    busy: float
    realtime: bool
    complaints: list[str]

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...

@final
class Watch:
    def __new__(cls) -> Watch: ...
    @property
    def done(self) -> float: ...
    def stop(self) -> None: ...

@final
class Capture:
    def write(self, path: str | PathLike[str], side: Literal["sender", "receiver"]) -> None: ...

@final
class Outcome:
    @property
    def capture(self) -> Capture | None: ...
    @property
    def flows(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def internals(self) -> Table: ...
    @property
    def subflows(self) -> Table: ...
    @property
    def subflow_series(self) -> Table: ...
    @property
    def subflow_internals(self) -> Table: ...
    @property
    def meta(self) -> Meta: ...

def simulate(scenario: str, watch: Watch | None = None) -> Outcome: ...
def algorithms() -> list[str]: ...
def check_algorithm(text: str) -> None: ...
def check_stack(json: str) -> None: ...
def check_udt_options(json: str) -> None: ...
def schedulers() -> list[str]: ...
def stacks() -> dict[str, dict[str, bool | int | str]]: ...
def udt_options(cc: str) -> dict[str, bool | int | str]: ...
def isolate() -> None: ...
def die_with_parent() -> None: ...
def run_testbed(scenario: str, tell: Callable[[float], None]) -> tuple[Outcome, Health]: ...
