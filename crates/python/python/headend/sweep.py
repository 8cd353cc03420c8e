"""Run a scenario of `headend emulate` with many seeds and values; return one table.

Each run is a task of its own: `headend emulate SCENARIO --seed N --set KEY=VALUE`. `headend.emulate` runs them on this
machine, `headend.ray.emulate` on a Ray cluster. In virtual time, a run depends on its seed and its values alone, so that
the table does not depend on who ran what.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow

RETRIES = 4
"""How often a run is repeated after a signal or the death of its worker ended it."""

COUNTS = ("routers", "links", "endpoints_up", "sessions_lost", "malformed", "messages", "updates")
"""Columns of whole numbers, by their names in results.json."""

Value = bool | int | float | str | Sequence["Value"]
"""A value of a scenario."""


class Interrupted(RuntimeError):
    """A signal ended the command. The run may be repeated."""


@dataclass(frozen=True)
class Run:
    """A run of the command."""

    program: str
    scenario: str
    seed: int
    values: tuple[tuple[str, str], ...]
    """Keys, and values as TOML."""
    keep: str | None

    @property
    def name(self) -> str:
        """The name of the directory for its files."""
        pairs = [f"seed={self.seed}", *(f"{key}={value}" for key, value in self.values)]
        return ",".join(pairs).replace("/", "_")


class Caller(Protocol):
    """Calls a function for each argument, and again if the call was interrupted."""

    def call(self, function: Callable[[Run], dict[str, Any]], runs: Sequence[Run]) -> Iterable[dict[str, Any]]:
        """Return the results in order."""
        ...


class Here:
    """Runs on this machine. Each run is a process of its own, so that threads are enough to start them."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def call(self, function: Callable[[Run], dict[str, Any]], runs: Sequence[Run]) -> Iterable[dict[str, Any]]:
        def one(run: Run) -> dict[str, Any]:
            for _ in range(RETRIES):
                try:
                    return function(run)
                except Interrupted:
                    pass
            return function(run)

        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(one, runs)


def toml(value: Value) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(toml, value)) + "]"
    raise TypeError(f"set: {value!r} is no value of TOML; give a number, a bool, a str or a list of them")


def run_once(run: Run) -> dict[str, Any]:
    """Run the command once; return what the table has of results.json."""
    program = shutil.which(run.program)
    if program is None:
        raise FileNotFoundError(f"program: {run.program} is not found; install the command or give its path")
    with tempfile.TemporaryDirectory() as room:
        directory = room if run.keep is None else os.path.join(run.keep, run.name)
        words = [program, "emulate", run.scenario, "--json", "--out", directory, "--seed", str(run.seed)]
        words += [word for key, value in run.values for word in ("--set", f"{key}={value}")]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode < 0:
        raise Interrupted(f"{run.name}: signal {-done.returncode} ended {run.program}")
    if done.returncode > 0:
        raise RuntimeError(f"{run.name}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    names = (*COUNTS, "end_s", "events")
    addresses = [
        {name: address[name] for name in ("address", "prefixes", "owner_asn", "deceived_max", "mean")}
        for address in found["addresses"]
    ]
    return {name: found[name] for name in names} | {"addresses": addresses}


def _schema(keys: Mapping[str, Sequence[Value]]) -> pyarrow.Schema:
    import pyarrow as pa

    event = pa.struct(
        [
            ("label", pa.string()),
            ("kind", pa.string()),
            *((name, pa.float64()) for name in ("at_s", "last_step_s", "convergence_s", "quiet_after_s")),
            ("updates", pa.int64()),
            ("changes", pa.int64()),
        ]
    )
    mean = pa.struct([(name, pa.float64()) for name in ("owner", "deceived", "without")])
    address = pa.struct(
        [
            ("address", pa.string()),
            ("prefixes", pa.list_(pa.string())),
            ("owner_asn", pa.int64()),
            ("deceived_max", pa.float64()),
            ("mean", mean),
        ]
    )
    return pa.schema(
        [
            ("seed", pa.uint64()),
            *((key, pa.array(list(values)).type) for key, values in keys.items()),
            *((name, pa.int64()) for name in COUNTS),
            ("end_s", pa.float64()),
            ("events", pa.list_(event)),
            ("addresses", pa.list_(address)),
        ]
    )


def emulate(
    scenario: str | os.PathLike[str],
    seeds: Iterable[int] = (1,),
    set: Mapping[str, Sequence[Value]] | None = None,
    *,
    program: str | os.PathLike[str] = "headend",
    keep: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    caller: Caller | None = None,
) -> pyarrow.Table:
    """Run a scenario with each seed and each combination of values; return a table with a row for each run.

    set: values by the path of their key in the scenario, for example {"links.delay_ms": [10, 50]}.
    program: the command `headend`, by its path or by its name on PATH.
    keep: a directory for the result files of each run; by default they are not kept.
    workers: runs at the same time; by default one for each processor.
    caller: runs the tasks; by default this machine does. `headend.ray.emulate` gives that of a cluster.

    The rows are in the order of the values, then of the seeds. `seed` and each key of `set` are columns. The others have
    the names of results.json: docs/emulate.md describes them.
    """
    try:
        import pyarrow as pa
    except ImportError as error:  # pragma: no cover
        raise ImportError("headend.emulate needs pyarrow: pip install headend[emulate]") from error

    keys = {key: list(values) for key, values in (set or {}).items()}
    if empty := [key for key, values in keys.items() if not values]:
        raise ValueError(f"set: {empty[0]} has no value; give at least one")
    numbers = list(seeds)
    if not numbers:
        raise ValueError("seeds: there is none; give at least one")
    if not Path(scenario).is_file():
        raise FileNotFoundError(f"scenario: {os.fspath(scenario)} is no file")
    where = None if keep is None else os.fspath(Path(keep).resolve())
    given = list(itertools.product(itertools.product(*keys.values()), numbers))
    runs = [
        Run(
            os.fspath(program),
            os.fspath(Path(scenario).resolve()),
            seed,
            tuple((key, toml(value)) for key, value in zip(keys, values, strict=True)),
            where,
        )
        for values, seed in given
    ]
    found = (caller or Here(workers)).call(run_once, runs)
    rows = [
        {"seed": seed, **dict(zip(keys, values, strict=True)), **row}
        for (values, seed), row in zip(given, found, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=_schema(keys))
