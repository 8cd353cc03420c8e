"""TCP connections and UDP flows in captures, and why they are slow, as Arrow tables.

`trace` returns a row for each TCP connection, `why` a row for each direction that sent data, and `why_udp` a row for
each UDP flow. All return a `Table`, which pyarrow, polars, DuckDB and every other reader of the Arrow PyCapsule interface take without a copy. `emulate` runs a
scenario of `headend emulate` with many seeds and values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headend._headend import CaptureError, CaptureWarning, Table, analyse, explain
from headend.spread import merge
from headend.sweep import emulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headend._headend import Options, Source

__all__ = ["CaptureError", "CaptureWarning", "Table", "emulate", "merge", "trace", "why", "why_udp"]


def trace(
    paths: Source | Iterable[Source],
    *,
    columns: Sequence[str] | None = None,
    memory: int = 2 << 30,
    idle: float = 7200.0,
    idle_closed: float = 1800.0,
    realm: bool = False,
    checksum: bool = False,
    threads: int | None = None,
    first_packet: int = 1,
    last_packet: int | None = None,
    strict: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Analyse captures; return a row for each TCP connection.

    paths: a path, a binary file object, or several. Several are read in the order of their first packets.
    columns: names of the columns to return; all by default. docs/trace-columns.md describes them.
    memory: limit in bytes. Beyond it, connections that have ended move to a temporary file.
    idle, idle_closed: seconds of the capture after which an open or a closed connection ends.
    realm: keep connections in different VLANs or tunnels apart.
    checksum: skip packets with a wrong checksum.
    threads: how many to analyse on; by default one for each processor.
    first_packet, last_packet: numbers of the packets to analyse, from 1.
    strict: raise CaptureError for a faulty file. By default a faulty file causes a CaptureWarning.
    progress: called with the bytes read so far and the bytes of all files, up to 50 times a second.

    Raises CaptureError if no capture can be read.
    """
    return _analyse(False, locals())


def why(
    paths: Source | Iterable[Source],
    *,
    columns: Sequence[str] | None = None,
    memory: int = 2 << 30,
    idle: float = 7200.0,
    idle_closed: float = 1800.0,
    realm: bool = False,
    checksum: bool = False,
    threads: int | None = None,
    first_packet: int = 1,
    last_packet: int | None = None,
    strict: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Divide the time of each connection into causes; return a row for each direction that sent data.

    The arguments are those of `trace`. docs/why.md describes the causes.
    """
    return _analyse(True, locals())


def why_udp(
    paths: Source | Iterable[Source],
    *,
    columns: Sequence[str] | None = None,
    realm: bool = False,
    checksum: bool = False,
    first_packet: int = 1,
    last_packet: int | None = None,
    strict: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Explain UDP flows: QUIC, RTP, ESP, WireGuard, DNS; return a row for each flow.

    The arguments are those of `trace`. The analysis runs on one thread. docs/python.md describes the columns, docs/why.md
    what the packets show.
    """
    chosen = None if columns is None else list(columns)
    options: Options = {
        "columns": chosen,
        "memory": 2 << 30,
        "idle": 7200.0,
        "idle_closed": 1800.0,
        "realm": realm,
        "checksum": checksum,
        "threads": 1,
        "first_packet": first_packet,
        "last_packet": last_packet,
        "strict": strict,
    }
    return explain(paths, progress, options)


def _analyse(with_why: bool, given: dict[str, Any]) -> Table:
    """Analyse with the arguments of `trace` or `why`, by their names."""
    paths, progress, columns = (given.pop(name) for name in ("paths", "progress", "columns"))
    options: Any = given | {"columns": None if columns is None else list(columns)}
    return analyse(paths, with_why, progress, options)
