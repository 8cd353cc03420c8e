"""Divide captures into ranges, analyse each range where it is, and join the results.

A range becomes a lot of segments for each part (`map_range`). The lots of a part become a part file (`reduce_part`), as
`headend trace --part` writes it; `merge` and `headend trace --merge` join the parts. `run` does all this with any
executor; `headend.ray` has one for Ray. The result does not depend on the ranges, the parts or the executor.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import headend._headend as native

if TYPE_CHECKING:
    from headend._headend import Options, Table

WINDOW = 1 << 20
"""Bytes that are searched for the first record of a range, and of the start of a file for what its ranges need."""

RANGE_BYTES = 256 << 20
"""Bytes of a range by default. Smaller ranges cost more for starting tasks and moving their results."""

RANGES_PER_PART = 4
"""Ranges at least for each part by default, so that all workers are busy to the end."""

PARTS_MAX = 4096
"""Parts of a run at most."""


@dataclass(frozen=True)
class Place:
    """A file, by a path or by a URL that fsspec understands."""

    url: str
    storage: dict[str, Any] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Whether fsspec reads it."""
        return "://" in self.url

    def open(self) -> BinaryIO:
        """Open it for reading."""
        if not self.is_remote:
            return open(self.url, "rb")
        import fsspec

        return cast(BinaryIO, fsspec.open(self.url, "rb", **self.storage).open())


DEFAULTS: Options = {
    "columns": None,
    "memory": 2 << 30,
    "idle": 7200.0,
    "idle_closed": 1800.0,
    "realm": False,
    "checksum": False,
    "threads": 1,
    "first_packet": 1,
    "last_packet": None,
    "strict": False,
}
"""The options of an analysis that asks for nothing special, on one thread."""


@dataclass(frozen=True)
class Job:
    """What all tasks of a run have in common."""

    places: tuple[Place, ...]
    parts: int
    why: bool
    options: Options


@dataclass(frozen=True)
class Range:
    """Bytes of a file: the records that begin in them. `end` is None for the end of the file.

    header: what the reader of the range needs before its first record. The first range of a file has the file's own.
    exact: a record begins at `begin`; otherwise the first one is searched for.
    start: the clock before the range, if the ranges before it have been asked.
    """

    file: int
    begin: int = 0
    end: int | None = None
    header: bytes = b""
    exact: bool = True
    start: bytes | None = None


@dataclass(frozen=True)
class Report:
    """What a range tells the driver."""

    side: bytes
    first: int
    last: int | None
    header: bytes | None
    fragmented: bool
    untimed: bool
    faults: tuple[str, ...]


def next_record(header: bytes, window: bytes) -> int | None:
    """Offset of the first record in a window; None if there is none."""
    return native.next_record(header, window)


def map_range(job: Job, span: Range) -> tuple[Report, list[bytes]]:
    """Sort a range's segments into a lot for each part."""
    place = job.places[span.file]
    with place.open() as file:
        first = span.begin
        if not span.exact:
            file.seek(first)
            at = next_record(span.header, file.read(WINDOW))
            first = first + at if at is not None else file.seek(0, os.SEEK_END)
        # Offset in the file of what the reader counts as 0.
        base = first - len(span.header)
        until = None if span.end is None else max(span.end, first) - base
        file.seek(first)
        source = file if place.is_remote else place.url
        found = native.map_stream(
            place.url, source, span.header, first, until, job.parts, job.why, job.options, span.start
        )
    end, faults = found["end"], tuple(found["faults"])
    last = None if end is None else base + end
    fragmented, untimed = found["is_fragmented"], found["is_untimed"]
    report = Report(found["side"], first, last, found["header"], fragmented, untimed, faults)
    return report, found["lots"]


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
    """The ranges of files, in order. A file that is neither plain pcap nor plain pcapng is one range."""
    spans: list[Range] = []
    for at, place in enumerate(places):
        with place.open() as file:
            header = native.range_header(file.read(WINDOW))
            size = file.seek(0, os.SEEK_END)
        if header is None or size <= range_bytes:
            spans.append(Range(at))
            continue
        cuts = list(range(range_bytes, size, range_bytes))
        spans.append(Range(at, 0, cuts[0]))
        ends: list[int | None] = [*cuts[1:], None]
        spans += [Range(at, cut, end, header, False) for cut, end in zip(cuts, ends, strict=True)]
    return spans


def range_of(places: Iterable[Place], parts: int) -> int:
    """Bytes of a range by default."""

    def size(place: Place) -> int:
        with place.open() as file:
            return file.seek(0, os.SEEK_END)

    total = sum(map(size, places))
    return max(WINDOW, min(RANGE_BYTES, total // (RANGES_PER_PART * parts)))


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
    range_bytes: int | None = None,
    why: bool = False,
    storage: dict[str, Any] | None = None,
    options: Options,
    faults: Callable[[str], object] = lambda line: None,
) -> list[Path]:
    """Analyse captures; write the parts into a directory and return their paths.

    range_bytes: by default `RANGE_BYTES`, or less so that there are a few ranges for each part.
    faults: called with each sentence about a faulty file.
    """
    if not 1 <= parts <= PARTS_MAX:
        raise ValueError(f"parts: {parts} is out of range; give 1 to {PARTS_MAX}")
    if range_bytes is not None and range_bytes < WINDOW:
        raise ValueError(f"range_bytes: {range_bytes} is out of range; give {WINDOW} or more")
    places = order(Place(os.fspath(url), storage or {}) for url in urls)
    if not places:
        raise ValueError("paths: no capture is named; give at least one")
    job = Job(places, parts, why, options)
    spans = divide(places, range_bytes or range_of(places, parts))
    made = _parts(executor, job, spans, faults)
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
    spans, mapped = _whole_files(executor, job, spans, mapped)
    spans, mapped = _joined(executor, job, spans, mapped)
    while True:
        sides = [report.side for report, _ in mapped]
        starts, again = native.starts(sides)
        if again is None:
            break
        at, start = again
        spans[at] = replace(spans[at], begin=mapped[at][0].first, exact=True, start=start)
        mapped[at] = executor.map(job, [spans[at]])[0]
    for report, _ in mapped:
        for line in report.faults:
            faults(line)
    return executor.reduce(job, spans, sides, starts, [lots for _, lots in mapped])


Mapped = list[tuple[Report, list[Any]]]
"""The report of each range, and handles of its lots."""


def _whole_files(
    executor: Executor, job: Job, spans: list[Range], mapped: Mapped
) -> tuple[list[Range], Mapped]:
    """Map each file again as one range if its packets need those before them."""
    pairs = list(zip(spans, mapped, strict=True))
    untimed = {span.file for span, (report, _) in pairs if report.untimed}
    divided = {span.file for span, _ in pairs if span.begin > 0}
    again = [Range(file) for file in sorted(untimed & divided)]
    if not again:
        return spans, mapped
    pairs = [pair for pair in pairs if pair[0].file not in untimed & divided]
    pairs += zip(again, executor.map(job, again), strict=True)
    pairs.sort(key=lambda pair: (pair[0].file, pair[0].begin))
    return [span for span, _ in pairs], [result for _, result in pairs]


def _joined(
    executor: Executor, job: Job, spans: list[Range], mapped: Mapped
) -> tuple[list[Range], Mapped]:
    """Make each range begin where the one before it ends. A range that was read otherwise is mapped again."""
    joined: list[tuple[Range, tuple[Report, list[Any]]]] = []
    expected: int | None = 0
    # Of the range before, if the format has one that changes.
    header: bytes | None = None
    for span, result in zip(spans, mapped, strict=True):
        needed = span.header if header is None else header
        if span.begin == 0:
            pass
        # The range before reached the end of the file, or covers this range.
        elif expected is None or (span.end is not None and expected >= span.end):
            continue
        elif (result[0].first, span.header) != (expected, needed):
            span = Range(span.file, expected, span.end, needed)
            result = executor.map(job, [span])[0]
        joined.append((span, result))
        expected, header = result[0].last, result[0].header
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
