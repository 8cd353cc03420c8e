"""The wheel against the command, and with the readers of Arrow that people use.

Needs pyarrow, polars and duckdb. HEADEND names the command, CAPTURES a directory of captures.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any

import duckdb
import headend
import polars
import pyarrow

CAPTURES = Path(os.environ["CAPTURES"])
GOLDEN = sorted(CAPTURES.glob("*.pcap.gz")) + sorted(CAPTURES.glob("*.pcapng.gz"))
CAPTURE = CAPTURES / "conn-size.pcap.gz"


def command(*words: object) -> list[dict[str, Any]]:
    """The objects that `headend trace ... --json` prints."""
    run = subprocess.run(
        [os.environ["HEADEND"], "trace", *map(str, words), "--json"],
        check=False,
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def plain(table: pyarrow.Table) -> list[dict[str, Any]]:
    """The rows of a table; times as nanoseconds."""
    fields = [
        pyarrow.field(f.name, pyarrow.int64()) if pyarrow.types.is_timestamp(f.type) else f
        for f in table.schema
    ]
    rows: list[dict[str, Any]] = table.cast(pyarrow.schema(fields)).to_pylist()
    return rows


class AgainstTheCommand(unittest.TestCase):
    def test_each_value_of_trace_is_the_commands(self) -> None:
        for capture in GOLDEN:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", headend.CaptureWarning)
                table = headend.trace(capture)
            lines = command(capture)
            connections = [line for line in lines if line["kind"] == "connection"]
            for line in connections:
                del line["schema"], line["kind"]
            self.assertEqual(plain(pyarrow.table(table)), connections, capture.name)
            summary = lines[-1]
            del summary["schema"], summary["kind"]
            self.assertEqual(table.summary, summary, capture.name)

    def test_each_sentence_and_time_of_why_is_the_commands(self) -> None:
        for capture in GOLDEN:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", headend.CaptureWarning)
                rows = plain(pyarrow.table(headend.why(capture)))
            sides = {
                (line["connection"], side): line
                for line in command("why", capture)
                if line["kind"] == "why"
                for side in ("a2b", "b2a")
                if side in line
            }
            self.assertEqual(len(rows), len(sides), capture.name)
            for row in rows:
                line = sides[row["connection"], row["direction"]]
                side = line[row["direction"]]
                for name in ("bytes", "sentence", "cause", "part", "confidence", "vantage"):
                    self.assertEqual(row[name], side[name], capture.name)
                for name in ("elapsed_ns", "rtt_to_a_ns", "rtt_to_b_ns", "a_address", "b_port"):
                    self.assertEqual(row[name], line[name], capture.name)
                times = {name[:-3]: row[name] for name in row if f"{name[:-3]}_longest_ns" in row}
                self.assertEqual(
                    {cause: time for cause, time in times.items() if time > 0},
                    {cause: share["time_ns"] for cause, share in side["causes"].items()},
                )
                self.assertEqual(sum(times.values()), row["elapsed_ns"])


class Readers(unittest.TestCase):
    def test_pyarrow_polars_and_duckdb_read_the_same_rows(self) -> None:
        found = headend.trace(CAPTURE)
        arrow = pyarrow.table(found)
        self.assertEqual(arrow.num_rows, found.connections)
        self.assertEqual(arrow.column_names, found.column_names)
        # A second stream starts again.
        self.assertEqual(polars.DataFrame(found).height, found.connections)
        # DuckDB finds the variable by its name.
        counts = duckdb.sql("select count(*), sum(packets) from found").fetchall()
        self.assertEqual(counts, [(arrow.num_rows, sum(arrow["packets"].to_pylist()))])

    def test_no_reader_copies(self) -> None:
        batches = list(pyarrow.RecordBatchReader.from_stream(headend.trace(CAPTURE)))
        before = pyarrow.total_allocated_bytes()
        arrow = pyarrow.table(headend.trace(CAPTURE))
        # The buffers belong to the wheel, so that pyarrow's own allocator gave out none.
        self.assertEqual(pyarrow.total_allocated_bytes(), before)
        self.assertEqual(pyarrow.Table.from_batches(batches), arrow)

    def test_the_schema_is_there_without_the_rows(self) -> None:
        table = headend.why(CAPTURE, columns=["cause", "part"])
        schema = pyarrow.schema(table)
        self.assertEqual(schema.names, ["cause", "part"])
        self.assertIn(b"description", schema.field("cause").metadata)

    def test_chosen_columns_come_in_the_order_given(self) -> None:
        arrow = pyarrow.table(headend.trace(CAPTURE, columns=["packets", "connection"]))
        self.assertEqual(arrow.column_names, ["packets", "connection"])


class Inputs(unittest.TestCase):
    def test_a_path_a_file_object_and_several_of_them(self) -> None:
        whole = pyarrow.table(headend.trace(CAPTURE))
        self.assertTrue(pyarrow.table(headend.trace(str(CAPTURE))).equals(whole))
        with CAPTURE.open("rb") as file:
            self.assertTrue(pyarrow.table(headend.trace(file)).equals(whole))
        other = GOLDEN[0]
        both = pyarrow.table(headend.trace([CAPTURE, other]))
        mixed = pyarrow.table(headend.trace([io.BytesIO(CAPTURE.read_bytes()), other]))
        self.assertTrue(mixed.equals(both))

    def test_a_missing_file_is_an_error_with_the_commands_text(self) -> None:
        with self.assertRaises(headend.CaptureError) as caught:
            headend.trace("/nonexistent.pcap")
        run = subprocess.run(
            [os.environ["HEADEND"], "trace", "/nonexistent.pcap"],
            check=False,
            capture_output=True,
            text=True,
        )
        self.assertIn(f"headend: {caught.exception}\n", run.stderr)

    def test_a_faulty_file_warns_and_strict_raises(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            cut = Path(directory) / "cut.pcap.gz"
            cut.write_bytes(CAPTURE.read_bytes()[:-100])
            with self.assertWarnsRegex(headend.CaptureWarning, "first fault at octet"):
                table = headend.trace(cut)
            self.assertTrue(table.faults)
            with self.assertRaisesRegex(headend.CaptureError, "first fault at octet"):
                headend.trace(cut, strict=True)

    def test_wrong_arguments_are_named(self) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"columns": ["packet"]}, "no column \"packet\"; similar: first_packet, packets"),
            ({"threads": 0}, "threads: 0 is out of range"),
            ({"idle": -1.0}, "idle: -1 s is out of range"),
            ({"first_packet": 0}, "first_packet: 0 is out of range"),
        ]
        for given, text in wrong:
            with self.assertRaisesRegex(ValueError, text):
                headend.trace(CAPTURE, **given)
        with self.assertRaisesRegex(TypeError, "int is no path"):
            headend.trace(5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "no capture is named"):
            headend.trace([])


class Running(unittest.TestCase):
    def test_progress_ends_with_all_bytes(self) -> None:
        seen: list[tuple[int, int]] = []
        headend.trace(CAPTURE, progress=lambda done, total: seen.append((done, total)))
        size = CAPTURE.stat().st_size
        self.assertEqual(seen[-1], (size, size))

    def test_an_exception_in_progress_ends_the_analysis(self) -> None:
        def progress(done: int, total: int) -> None:
            raise LookupError

        with self.assertRaises(LookupError):
            headend.trace(CAPTURE, progress=progress)

    def test_an_interrupt_ends_the_reading_of_a_silent_pipe(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            pipe = Path(directory) / "pipe"
            os.mkfifo(pipe)
            # Both ends, so that neither opening nor reading ends by itself.
            keeper = os.open(pipe, os.O_RDWR)
            try:
                main = threading.main_thread().ident
                assert main is not None
                threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    headend.trace(pipe)
            finally:
                os.close(keeper)

    def test_other_threads_of_python_run_meanwhile(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            pipe = Path(directory) / "pipe"
            os.mkfifo(pipe)
            octets = subprocess.run(
                ["gzip", "-dc", CAPTURE], check=True, capture_output=True
            ).stdout
            # The analysis waits for this thread of Python.
            writer = threading.Thread(target=pipe.write_bytes, args=(octets,))
            writer.start()
            table = headend.trace(pipe)
            writer.join()
            self.assertEqual(table.connections, headend.trace(CAPTURE).connections)


if __name__ == "__main__":
    unittest.main()
