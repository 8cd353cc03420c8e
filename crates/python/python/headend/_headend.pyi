"""Types of the compiled module."""

import os
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, TypedDict

class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

Source: TypeAlias = str | os.PathLike[str] | Readable

class Options(TypedDict):
    columns: list[str] | None
    memory: int
    idle: float
    idle_closed: float
    realm: bool
    checksum: bool
    threads: int | None
    first_packet: int
    last_packet: int | None
    strict: bool

class CaptureError(OSError): ...
class CaptureWarning(UserWarning): ...

class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def connections(self) -> int: ...
    @property
    def summary(self) -> dict[str, int | None | dict[str, int]]: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def faults(self) -> list[str]: ...

def analyse(
    paths: Source | Iterable[Source],
    why: bool,
    progress: Callable[[int, int], object] | None,
    given: Options,
) -> Table: ...
