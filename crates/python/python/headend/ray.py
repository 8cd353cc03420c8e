"""Run `headend.spread` and `headend.emulate` on a Ray cluster.

Each range of a capture is a task, and so is each part. Ray runs a task again if its worker dies; the lots of segments
stay in the object store of the node that read them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headend import sweep
from headend._headend import CaptureWarning
from headend.spread import Job, Range, Report, map_range, reduce_part, run, whole_part

if TYPE_CHECKING:
    import pyarrow

    from headend._headend import Options

try:
    # Ray reads these when it is imported. The second one lets a cluster of this machine listen on the loopback address
    # alone, also on Linux. With an address of a cluster, Ray needs an address that other machines reach.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "RAY_ADDRESS" not in os.environ:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray
except ImportError as error:  # pragma: no cover
    raise ImportError("headend.ray needs Ray: pip install headend[ray]") from error

RETRIES = 4
"""How often a task runs again after its worker has died."""


class Cluster:
    """Runs tasks on the Ray cluster that this process is connected to.

    Without one, it connects to the cluster that the environment variable RAY_ADDRESS names, or starts one on this machine.
    """

    def __init__(self, **start: Any) -> None:
        if not ray.is_initialized():
            ray.init(**({"include_dashboard": False} | start))

    def map(self, job: Job, spans: Sequence[Range]) -> list[tuple[Report, list[Any]]]:
        task = ray.remote(_map).options(num_returns=job.parts + 1, max_retries=RETRIES)
        handles = [task.remote(job, span) for span in spans]
        reports = ray.get([own[0] for own in handles])
        return [(report, own[1:]) for report, own in zip(reports, handles, strict=True)]

    def reduce(
        self,
        job: Job,
        spans: Sequence[Range],
        sides: list[bytes],
        starts: list[bytes],
        lots: Sequence[list[Any]],
    ) -> Iterable[bytes]:
        task = ray.remote(_reduce).options(max_retries=RETRIES)
        common = ray.put((job, list(spans), sides, starts))
        tasks = [task.remote(common, part, *[own[part] for own in lots]) for part in range(job.parts)]
        for handle in tasks:
            yield ray.get(handle)

    def call(
        self, function: Callable[[sweep.Run], dict[str, Any]], runs: Sequence[sweep.Run]
    ) -> Iterable[dict[str, Any]]:
        """Call the function for each run, and return the results in order."""
        task = ray.remote(function).options(max_retries=RETRIES, retry_exceptions=[sweep.Interrupted])
        for handle in [task.remote(run) for run in runs]:
            yield ray.get(handle)

    def whole(self, job: Job) -> Iterable[bytes]:
        task = ray.remote(whole_part).options(max_retries=RETRIES)
        for handle in [task.remote(job, part) for part in range(job.parts)]:
            yield ray.get(handle)


def _map(job: Job, span: Range) -> tuple[Any, ...]:
    report, lots = map_range(job, span)
    return (report, *lots)


def _reduce(
    common: tuple[Job, list[Range], list[bytes], list[bytes]], part: int, *lots: bytes
) -> bytes:
    job, spans, sides, starts = common
    return reduce_part(job, part, spans, sides, starts, lots)


def parts(
    urls: Iterable[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    parts: int | None = None,
    range_bytes: int | None = None,
    why: bool = False,
    storage: dict[str, Any] | None = None,
    memory: int = 2 << 30,
    idle: float = 7200.0,
    idle_closed: float = 1800.0,
    realm: bool = False,
    cluster: Cluster | None = None,
) -> list[Path]:
    """Analyse captures on Ray; write the parts into a directory and return their paths for `headend.merge`.

    urls: paths on storage that all workers share, or URLs that fsspec understands, such as s3://bucket/key.
    parts: how many; by default one for each processor of the cluster.
    range_bytes: bytes of a task; by default 256 MiB, or less so that there are a few tasks for each part.
    storage: options of fsspec, for example the endpoint and the keys.
    cluster: where to run; by default the cluster that Ray is connected to, or a new one of this machine.
    """
    cluster = cluster or Cluster()
    count = parts or max(1, int(ray.cluster_resources().get("CPU", 1)))
    options: Options = {
        "columns": None,
        "memory": memory,
        "idle": idle,
        "idle_closed": idle_closed,
        "realm": realm,
        "checksum": False,
        "threads": 1,
        "first_packet": 1,
        "last_packet": None,
        "strict": False,
    }

    def warn(line: str) -> None:
        warnings.warn(line, CaptureWarning, stacklevel=2)

    return run(
        cluster,
        urls,
        directory,
        parts=count,
        range_bytes=range_bytes,
        why=why,
        storage=storage,
        options=options,
        faults=warn,
    )


def emulate(
    scenario: str | os.PathLike[str],
    seeds: Iterable[int] = (1,),
    set: Mapping[str, Sequence[sweep.Value]] | None = None,
    *,
    program: str | os.PathLike[str] = "headend",
    keep: str | os.PathLike[str] | None = None,
    cluster: Cluster | None = None,
) -> pyarrow.Table:
    """Like `headend.emulate`, with a Ray task for each run.

    The scenario, the files that it names and `keep` are on storage that all workers share. `program` is installed on each.
    """
    caller = cluster or Cluster()
    return sweep.emulate(scenario, seeds, set, program=program, keep=keep, caller=caller)
