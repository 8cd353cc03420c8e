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
    def flows(self) -> int: ...
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

def explain(
    paths: Source | Iterable[Source],
    progress: Callable[[int, int], object] | None,
    given: Options,
) -> Table: ...

class Mapped(TypedDict):
    lots: list[bytes]
    side: bytes
    end: int | None
    header: bytes | None
    is_fragmented: bool
    is_untimed: bool
    faults: list[str]

def range_header(window: bytes) -> bytes | None: ...
def next_record(header: bytes, window: bytes) -> int | None: ...
def first_time(source: Readable) -> int | None: ...
def map_stream(
    name: str,
    source: Source,
    header: bytes,
    begin: int,
    until: int | None,
    parts: int,
    why: bool,
    given: Options,
    start: bytes | None,
) -> Mapped: ...
def starts(given: list[bytes]) -> tuple[list[bytes], tuple[int, bytes] | None]: ...
def reduce_lots(
    part: tuple[int, int],
    files: list[str],
    given_sides: list[bytes],
    lots: list[tuple[int, bytes, bytes]],
    why: bool,
    given: Options,
) -> bytes: ...
def write_part(
    paths: Iterable[Source], part: tuple[int, int], why: bool, given: Options
) -> bytes: ...
def merge(paths: list[os.PathLike[str]], why: bool, columns: list[str] | None) -> Table: ...
