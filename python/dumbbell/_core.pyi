from os import PathLike
from typing import Final, Literal, TypedDict, final, type_check_only

__all__ = [
    "Capture",
    "Outcome",
    "Table",
    "TransferDamagedError",
    "TransferRefusedError",
    "TransferWatch",
    "UdtListener",
    "UdtSocket",
    "Watch",
    "__version__",
    "algorithms",
    "check_algorithm",
    "check_stack",
    "check_udt_options",
    "schedulers",
    "simulate",
    "stacks",
    "udt_bench",
    "udt_key",
    "udt_options",
    "udt_pull",
    "udt_push",
    "udt_serve",
]

__version__: Final[str]

@type_check_only
class Meta(TypedDict):
    data_packets: int
    events: int
    version: str

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

class TransferDamagedError(OSError): ...
class TransferRefusedError(OSError): ...

@final
class UdtSocket:
    @staticmethod
    def connect(host: str, port: int, settings_json: str) -> UdtSocket: ...
    @staticmethod
    def rendezvous(
        local: tuple[str, int], peer: tuple[str, int], settings_json: str
    ) -> UdtSocket: ...
    def send(self, data: bytes, timeout: float | None = None) -> None: ...
    def recv(self, size: int, timeout: float | None = None) -> bytes: ...
    def send_message(
        self,
        data: bytes,
        *,
        ttl: float | None = None,
        in_order: bool = True,
        timeout: float | None = None,
    ) -> None: ...
    def recv_message(self, timeout: float | None = None) -> bytes | None: ...
    def close(self, linger: float | None = None) -> None: ...
    def abandon(self) -> None: ...
    def statistics(self) -> dict[str, float]: ...
    @property
    def local(self) -> tuple[str, int]: ...
    @property
    def peer(self) -> tuple[str, int]: ...

@final
class UdtListener:
    def __new__(cls, host: str, port: int, settings_json: str) -> UdtListener: ...
    def accept(self, timeout: float | None = None) -> UdtSocket: ...
    def close(self) -> None: ...
    @property
    def local(self) -> tuple[str, int]: ...

@type_check_only
class TransferProgress(TypedDict):
    what: str
    bytes: int
    total: int
    resumed: int
    files: int
    all_files: int
    rtt: float | None
    sent: int
    retransmitted: int

@final
class TransferWatch:
    def __new__(cls) -> TransferWatch: ...
    def stop(self) -> None: ...
    def progress(self) -> TransferProgress: ...
    def events(self) -> list[str]: ...
    def series(self) -> dict[str, list[float]]: ...
    def internals(self) -> list[tuple[int, float, str, float]]: ...

def udt_push(
    peer: str,
    paths: list[PathLike[str]],
    settings_json: str,
    retries: int,
    interval: float,
    watch: TransferWatch,
) -> None: ...
def udt_pull(
    peer: str,
    paths: list[str],
    into: PathLike[str],
    settings_json: str,
    retries: int,
    interval: float,
    watch: TransferWatch,
) -> None: ...
def udt_serve(
    root: PathLike[str],
    local: str,
    settings_json: str,
    permission: tuple[bool, bool, bool],
    watch: TransferWatch,
) -> None: ...
def udt_bench(
    peer: str,
    seconds: float,
    size: int | None,
    settings_json: str,
    interval: float,
    watch: TransferWatch,
) -> tuple[int, float]: ...
def udt_key() -> str: ...
