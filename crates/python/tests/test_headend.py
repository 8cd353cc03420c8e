"""The wheel against the command, and with the readers of Arrow that people use.

Needs pyarrow, polars and duckdb. HEADEND names the command, CAPTURES a directory of captures.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
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


def datagrams(path: Path, payloads: list[tuple[bool, int, int, bytes]]) -> None:
    """Write a capture of UDP datagrams: from end a or to it, ports of a and b, payload. They are 20 ms apart."""
    with path.open("wb") as file:
        # Link type 101 is IP without a link layer.
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for number, (from_a, a_port, b_port, payload) in enumerate(payloads):
            ends = [(b"\x0a\0\0\x01", a_port), (b"\x0a\0\0\x02", b_port)]
            (source, sport), (target, dport) = ends if from_a else ends[::-1]
            udp = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
            head = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(udp), 0, 64, 17, 0)
            packet = head + source + target + udp
            time_us = number * 20_000
            stamp = (1_700_000_000 + time_us // 1_000_000, time_us % 1_000_000)
            file.write(struct.pack("<IIII", *stamp, len(packet), len(packet)) + packet)


def udp_capture(path: Path) -> None:
    """A capture with RTP that loses 3 packets, a question of DNS with its answer, and the start of QUIC."""
    rtp = [
        (True, 6000, 6002, struct.pack(">BBHII", 0x80, 8, n, n * 160, 7) + bytes(160))
        for n in range(60)
        if n not in range(20, 23)
    ]
    dns = [
        (True, 5353, 53, struct.pack(">HHQ", 9, 0x0100, 0)),
        (False, 5353, 53, struct.pack(">HHQ", 9, 0x8100, 0)),
    ]
    first = b"\xc0\0\0\0\x01\x08abcdefgh\x04clnt\0" + struct.pack(">H", 0x4000 | 1178)
    answer = b"\xe0\0\0\0\x01\x04clnt\x08serverid" + struct.pack(">H", 0x4000 | 402)
    quic = [
        (True, 40000, 443, first.ljust(1200, b"\x55")),
        (False, 40000, 443, answer.ljust(423, b"\x55")),
        (True, 40000, 443, b"\x40serverid".ljust(60, b"\x55")),
    ]
    datagrams(path, rtp + dns + quic)


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


    def test_each_value_of_why_udp_is_the_commands(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            own = Path(directory) / "udp.pcap"
            udp_capture(own)
            counts: dict[str, int] = {}
            for capture in [own, *GOLDEN]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", headend.CaptureWarning)
                    table = headend.why_udp(capture)
                rows = plain(pyarrow.table(table))
                lines = [line for line in command("why", "-u", capture) if line["kind"] == "why_udp"]
                self.assertEqual((len(rows), table.flows), (len(lines), len(lines)), capture.name)
                for row, line in zip(rows, lines, strict=True):
                    self.assertEqual(row, flat(row, line), capture.name)
                    counts[row["protocol"]] = counts.get(row["protocol"], 0) + 1
        self.assertLessEqual({"rtp", "dns", "quic", "unknown"}, counts.keys())

    def test_a_table_of_flows_has_what_the_packets_show(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            own = Path(directory) / "udp.pcap"
            udp_capture(own)
            table = headend.why_udp(own)
        rtp, dns, quic = plain(pyarrow.table(table))
        self.assertEqual((rtp["a2b_expected"], rtp["a2b_lost"], rtp["a2b_lost_in_a_row"]), (60, 3, 3))
        self.assertEqual((rtp["b2a_lost"], rtp["dns_questions"], rtp["quic_retry"]), (None,) * 3)
        self.assertEqual((dns["dns_answer_max_ns"], dns["dns_unanswered"]), (20_000_000, 0))
        self.assertEqual((quic["quic_answer_ns"], quic["quic_handshake_ns"]), (20_000_000, 40_000_000))
        self.assertEqual((quic["quic_version"], quic["quic_retry"]), ("0x00000001", False))
        self.assertEqual((table.summary["udp_packets"], table.summary["udp_flows"]), (62, 3))
        self.assertIn("why_udp: 3 flows", repr(table))


def flat(row: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """The values that a row of why_udp must have by the command's line, or as they are where the line has none."""
    expected = row | {name: line[name] for name in line.keys() & row.keys()}
    for side in ("a2b", "b2a"):
        streams = line[side]["streams"]
        for name in ("packets", "bytes", "silence_ns", "silence_until_packet"):
            expected[f"{side}_{name}"] = line[side][name]
        for name in ("expected", "lost", "out_of_order", "duplicates"):
            counts = [stream[name] for stream in streams]
            expected[f"{side}_{name}"] = sum(counts) if counts else None
        if len(streams) == 1:
            for name in ("payload_type", "jitter_mean_ns", "jitter_max_ns", "lost_in_a_row_until_packet"):
                expected[f"{side}_{name}"] = streams[0][name]
    for part in ("dns", "quic"):
        names = [name.removeprefix(f"{part}_") for name in row if name.startswith(f"{part}_")]
        values = line[part] or dict.fromkeys(names)
        expected |= {f"{part}_{name}": values[name] for name in names if name in values}
    for end in ("client", "server"):
        spin = (line["quic"] or {}).get(f"{end}_spin", {})
        for name in ("rtt_min_ns", "rtt_median_ns", "rtt_max_ns"):
            expected[f"quic_{end}_spin_{name}"] = spin.get(name)
        prefix = f"quic_{end}_initials_"
        initials = (line["quic"] or {}).get(f"{end}_initials", {})
        for name in [name.removeprefix(prefix) for name in row if name.startswith(prefix)]:
            expected[prefix + name] = initials[name] if line["quic"] else None
    return expected


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
