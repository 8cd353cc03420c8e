"""Time of `headend.spread` by number of workers, on Ray, on Dask and on processes of this machine.

    python measure/scaling.py --on ray --workers 1 --workers 2 --runs 5 capture.pcap

A line of JSON for each number of workers: the least wall time of each phase over the runs, in seconds; and the least CPU
time of a run, of all processes. Phases are the start of the workers, map, reduce, and writing the parts. `single` is one
thread of `headend.trace` without a driver. The first run is a rehearsal that starts the workers and counts for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import headend
from headend import spread


def cpu_seconds() -> float:
    """CPU time of this process and of its descendants, including Ray's and Dask's."""
    times: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            times[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"))

    def is_own(pid: int) -> bool:
        while pid in times and pid != os.getpid():
            pid = times[pid][0]
        return pid == os.getpid()

    return sum(seconds for pid, (_, seconds) in times.items() if is_own(pid))


class Timed:
    """An executor whose phases are timed."""

    def __init__(self, inner: spread.Executor) -> None:
        self.inner = inner
        self.seconds: dict[str, float] = {}

    def map(self, job: spread.Job, spans: Sequence[spread.Range]) -> spread.Mapped:
        begin = time.perf_counter()
        mapped = self.inner.map(job, spans)
        self.seconds["map"] = self.seconds.get("map", 0.0) + time.perf_counter() - begin
        return mapped

    def reduce(self, *given: Any) -> Iterator[bytes]:
        begin = time.perf_counter()
        made = list(self.inner.reduce(*given))
        self.seconds["reduce"] = time.perf_counter() - begin
        return iter(made)

    def whole(self, job: spread.Job) -> Any:
        return self.inner.whole(job)


class OnDask:
    """Runs the tasks on a Dask cluster of this machine."""

    def __init__(self, workers: int) -> None:
        from dask.distributed import Client, LocalCluster

        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        self.client = Client(cluster)

    def map(self, job: spread.Job, spans: Sequence[spread.Range]) -> spread.Mapped:
        whole = [self.client.submit(spread.map_range, job, span, pure=False) for span in spans]
        pick = self.client.submit
        reports = [pick(lambda made: made[0], one, pure=False) for one in whole]
        lots = [
            [pick(lambda made, at: made[1][at], one, at, pure=False) for at in range(job.parts)]
            for one in whole
        ]
        return list(zip(self.client.gather(reports), lots, strict=True))

    def reduce(
        self,
        job: spread.Job,
        spans: Sequence[spread.Range],
        sides: list[bytes],
        starts: list[bytes],
        lots: Sequence[list[Any]],
    ) -> Iterator[bytes]:
        tasks = [
            self.client.submit(
                spread.reduce_part, job, part, spans, sides, starts, [own[part] for own in lots], pure=False
            )
            for part in range(job.parts)
        ]
        yield from self.client.gather(tasks)

    def whole(self, job: spread.Job) -> Any:
        raise NotImplementedError("a capture with fragmented TCP segments is not measured")


def executor(on: str, workers: int) -> tuple[spread.Executor, Callable[[], object]]:
    """Start the workers; return them and how to stop them."""
    if on == "ray":
        import ray
        from headend.ray import Cluster

        return Cluster(num_cpus=workers, log_to_driver=False, logging_level="ERROR"), ray.shutdown
    if on == "dask":
        dask = OnDask(workers)
        return dask, dask.client.shutdown
    return spread.Processes(workers), lambda: None


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    """The least value of each figure."""
    return {name: round(min(run[name] for run in runs), 4) for name in runs[0]}


def measure(args: argparse.Namespace, workers: int) -> dict[str, float]:
    """Figures of that many workers."""
    begin = time.perf_counter()
    inner, stop = executor(args.on, workers)
    start = time.perf_counter() - begin
    options = spread.DEFAULTS
    runs = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(args.runs + 1):
            timed = Timed(inner)
            begin, used = time.perf_counter(), cpu_seconds()
            spread.run(
                timed,
                args.captures,
                home,
                parts=args.parts or workers,
                range_bytes=args.range_bytes,
                why=args.why,
                options=options,
            )
            total, used = time.perf_counter() - begin, cpu_seconds() - used
            runs.append(timed.seconds | {"total": total, "cpu": used})
    stop()
    return {"workers": workers, "start": round(start, 3), **least(runs[1:])}


def single(args: argparse.Namespace) -> dict[str, float]:
    """Figures of one thread without a driver."""
    runs = []
    for _ in range(args.runs):
        begin, used = time.perf_counter(), time.process_time()
        (headend.why if args.why else headend.trace)(args.captures, threads=1)
        runs.append({"total": time.perf_counter() - begin, "cpu": time.process_time() - used})
    return least(runs)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("captures", nargs="+")
    given.add_argument("--on", choices=["ray", "dask", "processes"], default="ray")
    given.add_argument("--workers", type=int, action="append")
    given.add_argument("--parts", type=int, help="default: as many as workers")
    given.add_argument("--range-bytes", type=int)
    given.add_argument("--runs", type=int, default=5)
    given.add_argument("--why", action="store_true")
    args = given.parse_args()
    print(json.dumps({"single": single(args)}), flush=True)
    for workers in args.workers or [1, 2, 4]:
        print(json.dumps({args.on: measure(args, workers)}), flush=True)


if __name__ == "__main__":
    main()
