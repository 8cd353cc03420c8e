"""Divide captures into ranges, analyse each range where it is, and join the results.

A range becomes a lot of segments for each part (`map_range`). The lots of a part become a part file (`reduce_part`), as
`headend trace --part` writes it; `merge` and `headend trace --merge` join the parts. `run` does all this with any
executor; `headend.ray` has one for Ray. The result does not depend on the ranges, the parts or the executor.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import headend._headend as native

if TYPE_CHECKING:
    from headend._headend import Options, Table

HEADER = 24
"""Length of the header of a pcap file."""

WINDOW = 1 << 20
"""Bytes that are searched for the first record of a range."""

RANGE_BYTES = 64 << 20
"""Bytes of a range by default."""

PARTS_MAX = 4096
"""Parts of a run at most."""


@dataclass(frozen=True)
class Place:
    """A file, by a path or by a URL that fsspec understands."""

    url: str
    storage: dict[str, Any] = field(default_factory=dict)

    def open(self) -> BinaryIO:
        """Open it for reading."""
        if "://" not in self.url:
            return open(self.url, "rb")
        import fsspec

        return cast(BinaryIO, fsspec.open(self.url, "rb", **self.storage).open())


@dataclass(frozen=True)
class Job:
    """What all tasks of a run have in common."""

    places: tuple[Place, ...]
    parts: int
    why: bool
    options: Options


@dataclass(frozen=True)
class Range:
    """Bytes of a file: the records that begin in them. `end` is None for the end of the file."""

    file: int
    begin: int
    end: int | None
    divisible: bool
    exact: bool = False
    start: bytes | None = None


@dataclass(frozen=True)
class Report:
    """What a range tells the driver."""

    side: bytes
    first: int
    last: int | None
    fragmented: bool
    faults: tuple[str, ...]


class _Stream:
    """A file's header, and its bytes from an offset on."""

    def __init__(self, header: bytes, file: BinaryIO) -> None:
        self.header = header
        self.file = file

    def read(self, size: int, /) -> bytes:
        if self.header:
            taken, self.header = self.header[:size], self.header[size:]
            return taken
        return self.file.read(size)


def next_record(header: bytes, window: bytes) -> int | None:
    """Offset of the first record in a window; None if there is none."""
    return native.next_record(header, window)


def map_range(job: Job, span: Range) -> tuple[Report, list[bytes]]:
    """Sort a range's segments into a lot for each part."""
    place = job.places[span.file]
    with place.open() as file:
        header = file.read(HEADER)
        first = span.begin
        if span.divisible and not span.exact and first > HEADER:
            file.seek(first)
            found = next_record(header, file.read(WINDOW))
            first = first + found if found is not None else file.seek(0, os.SEEK_END)
        until = None if span.end is None else HEADER + max(span.end - first, 0)
        file.seek(first if span.divisible else len(header))
        lots, side, end, fragmented, faults = native.map_stream(
            place.url, _Stream(header, file), until, job.parts, job.why, job.options, span.start
        )
    last = None if end is None else first + end - HEADER
    return Report(side, first, last, fragmented, tuple(faults)), lots


def reduce_part(
    job: Job,
    part: int,
    spans: Sequence[Range],
    sides: list[bytes],
    starts: Sequence[bytes],
    lots: Sequence[bytes],
) -> bytes:
    """Analyse the lots of a part; return the part file."""
    names = [place.url for place in job.places]
    given = [(span.file, start, lot) for span, start, lot in zip(spans, starts, lots, strict=True)]
    return native.reduce_lots((part, job.parts), names, sides, given, job.why, job.options)


def whole_part(job: Job, part: int) -> bytes:
    """Read everything and keep one part: for captures with fragmented TCP segments."""
    files = [place.open() for place in job.places]
    try:
        return native.write_part(files, (part, job.parts), job.why, job.options)
    finally:
        for file in files:
            file.close()


class Executor(Protocol):
    """Runs tasks on workers. A handle stands for a result that stays with the workers."""

    def map(self, job: Job, spans: Sequence[Range]) -> list[tuple[Report, list[Any]]]:
        """Map ranges; return the report of each, and handles of its lots."""
        ...

    def reduce(
        self,
        job: Job,
        spans: Sequence[Range],
        sides: list[bytes],
        starts: list[bytes],
        lots: Sequence[list[Any]],
    ) -> Iterable[bytes]:
        """Return the parts in order."""
        ...

    def whole(self, job: Job) -> Iterable[bytes]:
        """Return the parts in order, each by a worker that reads everything."""
        ...


class Processes:
    """Runs tasks in processes of this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers

    def _pool(self) -> concurrent.futures.ProcessPoolExecutor:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        return concurrent.futures.ProcessPoolExecutor(self.workers, mp_context=context)

    def map(self, job: Job, spans: Sequence[Range]) -> list[tuple[Report, list[Any]]]:
        with self._pool() as pool:
            return list(pool.map(map_range, [job] * len(spans), spans))

    def reduce(
        self,
        job: Job,
        spans: Sequence[Range],
        sides: list[bytes],
        starts: list[bytes],
        lots: Sequence[list[Any]],
    ) -> Iterable[bytes]:
        with self._pool() as pool:
            tasks = [
                pool.submit(
                    reduce_part, job, part, spans, sides, starts, [own[part] for own in lots]
                )
                for part in range(job.parts)
            ]
            for task in tasks:
                yield task.result()

    def whole(self, job: Job) -> Iterable[bytes]:
        with self._pool() as pool:
            yield from pool.map(whole_part, [job] * job.parts, range(job.parts))


def divide(places: Sequence[Place], range_bytes: int) -> list[Range]:
    """The ranges of files, in order. A file that is no plain pcap file is one range."""
    spans: list[Range] = []
    for at, place in enumerate(places):
        with place.open() as file:
            header = file.read(HEADER)
            size = file.seek(0, os.SEEK_END)
            # A header alone and a record that fits it: the same test that finds records later.
            file.seek(HEADER)
            divisible = next_record(header, file.read(WINDOW)) == 0
        if not divisible:
            spans.append(Range(at, HEADER, None, False))
            continue
        cuts = list(range(HEADER, max(size, HEADER + 1), range_bytes))
        ends: list[int | None] = [*cuts[1:], None]
        spans += [Range(at, begin, end, True) for begin, end in zip(cuts, ends, strict=True)]
    return spans


def order(places: Iterable[Place]) -> tuple[Place, ...]:
    """Files in the order of their first packets; files without packets last."""

    def key(place: Place) -> tuple[bool, int]:
        with place.open() as file:
            time = native.first_time(file)
        return time is None, time or 0

    return tuple(sorted(places, key=key))


def run(
    executor: Executor,
    urls: Iterable[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    parts: int,
    range_bytes: int = RANGE_BYTES,
    why: bool = False,
    storage: dict[str, Any] | None = None,
    options: Options,
    faults: Callable[[str], object] = lambda line: None,
) -> list[Path]:
    """Analyse captures; write the parts into a directory and return their paths.

    faults: called with each sentence about a faulty file.
    """
    if not 1 <= parts <= PARTS_MAX:
        raise ValueError(f"parts: {parts} is out of range; give 1 to {PARTS_MAX}")
    if range_bytes < WINDOW:
        raise ValueError(f"range_bytes: {range_bytes} is out of range; give {WINDOW} or more")
    places = order(Place(os.fspath(url), storage or {}) for url in urls)
    if not places:
        raise ValueError("paths: no capture is named; give at least one")
    job = Job(places, parts, why, options)
    made = _parts(executor, job, divide(places, range_bytes), faults)
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for at, octets in enumerate(made):
        path = target / f"{at}.part"
        # A part has its name only when it is complete.
        present = target / f".{at}.part.{os.getpid()}"
        present.write_bytes(octets)
        present.replace(path)
        paths.append(path)
    return paths


def _parts(
    executor: Executor, job: Job, spans: list[Range], faults: Callable[[str], object]
) -> Iterable[bytes]:
    mapped = executor.map(job, spans)
    if any(report.fragmented for report, _ in mapped):
        return executor.whole(job)
    spans, mapped = _joined(executor, job, spans, mapped)
    while True:
        sides = [report.side for report, _ in mapped]
        starts, again = native.starts(sides)
        if again is None:
            break
        at, start = again
        spans[at] = Range(spans[at].file, mapped[at][0].first, spans[at].end, True, True, start)
        if not spans[at].divisible:
            spans[at] = Range(spans[at].file, HEADER, None, False, True, start)
        mapped[at] = executor.map(job, [spans[at]])[0]
    for report, _ in mapped:
        for line in report.faults:
            faults(line)
    return executor.reduce(job, spans, sides, starts, [lots for _, lots in mapped])


def _joined(
    executor: Executor,
    job: Job,
    spans: list[Range],
    mapped: list[tuple[Report, list[Any]]],
) -> tuple[list[Range], list[tuple[Report, list[Any]]]]:
    """Make each range begin where the one before it ends. A range that was found elsewhere is mapped again."""
    joined: list[tuple[Range, tuple[Report, list[Any]]]] = []
    expected: int | None = HEADER
    file = -1
    for span, result in zip(spans, mapped, strict=True):
        if span.file != file:
            expected, file = HEADER, span.file
        if not span.divisible:
            joined.append((span, result))
            continue
        # The range before reached the end of the file, or covers this range.
        if expected is None or (span.end is not None and expected >= span.end):
            continue
        if result[0].first != expected:
            span = Range(span.file, expected, span.end, True, True)
            result = executor.map(job, [span])[0]
        joined.append((span, result))
        expected = result[0].last
    return [span for span, _ in joined], [result for _, result in joined]


def merge(
    parts: Iterable[str | os.PathLike[str]],
    *,
    why: bool = False,
    columns: Sequence[str] | None = None,
) -> Table:
    """Join the parts of a run: the table that `headend.trace` or `headend.why` gives for the whole capture.

    With `why`, the parts must have been made with `why` too.
    """
    chosen = None if columns is None else list(columns)
    return native.merge([Path(part) for part in parts], why, chosen)
