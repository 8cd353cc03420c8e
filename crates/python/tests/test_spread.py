"""Ranges, lots and parts against a single run, on processes of this machine and on Ray.

HEADEND names the command, CAPTURES a directory of captures. The tests of Ray run if Ray is installed.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings
from pathlib import Path
from typing import Any

import headend
import pyarrow
from headend import spread

CAPTURES = Path(os.environ["CAPTURES"])
HAS_RAY = importlib.util.find_spec("ray") is not None

OPTIONS = spread.DEFAULTS


class Here:
    """An executor that runs each task in this process."""

    def map(self, job: spread.Job, spans: Any) -> list[tuple[spread.Report, list[Any]]]:
        return [spread.map_range(job, span) for span in spans]

    def reduce(self, job: spread.Job, spans: Any, sides: Any, starts: Any, lots: Any) -> Any:
        for part in range(job.parts):
            own = [lot[part] for lot in lots]
            yield spread.reduce_part(job, part, spans, sides, starts, own)

    def whole(self, job: spread.Job) -> Any:
        return (spread.whole_part(job, part) for part in range(job.parts))


def plain(path: Path, directory: str) -> Path:
    """A capture without compression."""
    target = Path(directory) / path.name.removesuffix(".gz")
    target.write_bytes(gzip.decompress(path.read_bytes()))
    return target


def packet(flow: int, from_client: bool, sequence: int, flags: int, length: int) -> bytes:
    """A frame of Ethernet, IPv4 and TCP."""
    a, b = struct.pack(">I", 0xC0000200 + flow % 200), bytes([198, 51, 100, 1])
    source, destination = (a, b) if from_client else (b, a)
    ports = (2000 + flow, 80) if from_client else (80, 2000 + flow)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + length, 0, 0, 64, 6, 0, source, destination)
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence, 1, 0x50, flags, 4096, 0, 0)
    # Payload that looks like headers of records, so that the search for records has something to do.
    payload = struct.pack("<IIII", 1_700_000_000, 5, 60, 60) * (length // 16 + 1)
    return bytes(12) + b"\x08\x00" + ip + tcp + payload[:length]


def write(path: Path, packets: int, leaps: bool = False) -> Path:
    """A pcap file of some connections."""
    now = 1_700_000_000_000_000
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for at in range(packets):
            now += 1500 + (1_300_000_000 if leaps and at % 2000 == 1999 else 0)
            flow, length = at * 7 % 61, at * 331 % 1400
            frame = packet(flow, at % 3 > 0, at * 1000, 0x10 if at > 200 else 0x02, length)
            out.write(struct.pack("<IIII", *divmod(now, 1_000_000), len(frame), len(frame)))
            out.write(frame)
    return path


def block(kind: int, *body: bytes) -> bytes:
    """A block of pcapng."""
    octets = b"".join(body)
    octets += bytes(-len(octets) % 4)
    length = struct.pack("<I", 12 + len(octets))
    return struct.pack("<I", kind) + length + octets + length


def pcapng(path: Path, *, sections: int = 1, simple: bool = False) -> Path:
    """The packets of a pcap file as pcapng, of two interfaces: the second one is described later and counts in ns.

    sections: how many the file has. simple: some packets have no time stamp.
    """
    octets = path.read_bytes()
    records, at = [], 24
    while at < len(octets):
        seconds, micros, length, _ = struct.unpack_from("<IIII", octets, at)
        records.append((seconds * 1_000_000 + micros, octets[at + 16 : at + 16 + length]))
        at += 16 + length
    target = path.with_suffix(".pcapng")
    each = len(records) // sections + 1
    with target.open("wb") as out:
        for at, (micros, frame) in enumerate(records):
            nth = at % each
            if nth == 0:
                out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
                out.write(block(1, struct.pack("<HHI", 1, 0, 0)))
            if nth == each // 2:
                out.write(block(1, struct.pack("<HHI", 1, 0, 0), struct.pack("<HHBxxx", 9, 1, 9)))
            if simple and nth % 5 == 4:
                out.write(block(3, struct.pack("<I", len(frame)), frame))
                continue
            second = nth > each // 2 and at % 3 == 0
            ticks = micros * 1000 if second else micros
            head = struct.pack("<III", second, ticks >> 32, ticks & 0xFFFFFFFF)
            out.write(block(6, head, struct.pack("<II", len(frame), len(frame)), frame))
    return target


def report(*words: object) -> str:
    """What `headend trace` prints."""
    run = subprocess.run(
        [os.environ["HEADEND"], "trace", *map(str, words)], check=True, capture_output=True, text=True
    )
    return run.stdout


class Base(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = directory.name

    def parts(self, executor: spread.Executor, *paths: object, parts: int = 3, why: bool = False) -> Any:
        return spread.run(
            executor,
            [str(path) for path in paths],
            Path(self.home) / "parts",
            parts=parts,
            range_bytes=spread.WINDOW,
            why=why,
            options=OPTIONS,
        )

    def check(self, executor: spread.Executor, *paths: Path, parts: int = 3) -> None:
        """The parts of a run give what a single run gives."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", headend.CaptureWarning)
            whole = headend.trace(paths)
        merged = headend.merge(self.parts(executor, *paths, parts=parts))
        self.assertEqual(merged.summary, whole.summary)
        self.assertTrue(pyarrow.table(merged).equals(pyarrow.table(whole)))


class Ranges(Base):
    def test_each_capture_gives_what_one_run_gives(self) -> None:
        for path in sorted(CAPTURES.glob("*.gz")):
            with self.subTest(path.name):
                self.check(Here(), plain(path, self.home))
                self.check(Here(), path)

    def test_the_number_of_parts_changes_nothing(self) -> None:
        path = write(Path(self.home) / "long.pcap", 6_000)
        for parts in (1, 2, 7):
            with self.subTest(parts=parts):
                self.check(Here(), path, parts=parts)

    def test_a_file_of_many_ranges_gives_what_one_run_gives(self) -> None:
        path = write(Path(self.home) / "long.pcap", 12_000)
        self.assertGreater(len(spread.divide([spread.Place(str(path))], spread.WINDOW)), 6)
        self.check(Here(), path)

    def test_interfaces_and_sections_of_pcapng_change_nothing(self) -> None:
        path = write(Path(self.home) / "long.pcap", 9_000)
        for sections in (1, 3):
            with self.subTest(sections=sections):
                made = pcapng(path, sections=sections)
                self.assertGreater(len(spread.divide([spread.Place(str(made))], spread.WINDOW)), 4)
                self.check(Here(), made)

    def test_packets_without_time_stamps_change_nothing(self) -> None:
        path = write(Path(self.home) / "long.pcap", 6_000)
        self.check(Here(), pcapng(path, simple=True), plain(CAPTURES / "conn-size.pcap.gz", self.home))

    def test_a_range_with_damaged_bytes_changes_nothing(self) -> None:
        for path in (
            write(Path(self.home) / "damaged.pcap", 6_000),
            pcapng(write(Path(self.home) / "damaged.pcap", 6_000)),
        ):
            octets = bytearray(path.read_bytes())
            for at in (spread.WINDOW // 2, 2 * spread.WINDOW - 3000, 3 * spread.WINDOW + 5000):
                octets[at : at + 6000] = bytes(range(250)) * 24
            path.write_bytes(octets)
            with self.subTest(path.suffix):
                self.check(Here(), path)

    def test_by_default_there_are_a_few_ranges_for_each_part(self) -> None:
        path = Path(self.home) / "sparse.pcap"
        for size, expected in ((80 << 20, 10 << 20), (8 << 30, 256 << 20), (3 << 20, 1 << 20)):
            with path.open("wb") as file:
                file.truncate(size)
            self.assertEqual(spread.range_of([spread.Place(str(path))], 2), expected)

    def test_leaps_of_the_clock_change_nothing(self) -> None:
        self.check(Here(), write(Path(self.home) / "leaps.pcap", 9_000, leaps=True))

    def test_several_files_are_one_capture(self) -> None:
        long = write(Path(self.home) / "long.pcap", 5_000)
        self.check(Here(), long, plain(CAPTURES / "conn-size.pcap.gz", self.home))

    def test_a_range_that_begins_in_the_wrong_place_is_mapped_again(self) -> None:
        path = write(Path(self.home) / "long.pcap", 4_000)
        real = spread.next_record

        def late(header: bytes, window: bytes) -> int | None:
            first = real(header, window)
            return first if not first else first + 1

        with unittest.mock.patch.object(spread, "next_record", late):
            self.check(Here(), path)

    def test_why_and_the_report_of_merge_are_those_of_one_run(self) -> None:
        path = write(Path(self.home) / "long.pcap", 6_000)
        made = self.parts(Here(), path, why=True)
        whole = pyarrow.table(headend.why(path))
        self.assertTrue(pyarrow.table(headend.merge(made, why=True)).equals(whole))
        self.assertEqual(report("-lr", "--json", "--merge", *made), report("-lr", "--json", path))

    def test_processes_of_this_machine(self) -> None:
        self.check(spread.Processes(2), write(Path(self.home) / "long.pcap", 4_000))

    def test_wrong_arguments_and_files_are_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "parts: 0 is out of range"):
            self.parts(Here(), "x", parts=0)
        with self.assertRaisesRegex(FileNotFoundError, "/nonexistent"):
            self.parts(Here(), "/nonexistent")
        with self.assertRaisesRegex(headend.CaptureError, "0.part"):
            headend.merge([Path(self.home) / "0.part"])


@unittest.skipUnless(HAS_RAY, "Ray is not installed")
class OnRay(Base):
    driver: Any
    cluster: Any

    @classmethod
    def setUpClass(cls) -> None:
        from headend import ray as driver

        cls.driver = driver
        cls.cluster = driver.Cluster(num_cpus=2, log_to_driver=False, logging_level="ERROR")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.driver.ray.shutdown()

    def test_it_listens_on_loopback_alone(self) -> None:
        nodes = self.driver.ray.nodes()
        self.assertEqual([node["NodeManagerAddress"] for node in nodes], ["127.0.0.1"])
        self.assertEqual(os.environ["RAY_USAGE_STATS_ENABLED"], "0")
        found = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True)
        lines = [line.split() for line in found.stdout.splitlines()]
        own = [line[3] for line in lines if any(name in line[-1] for name in ("ray", "gcs_server"))]
        self.assertTrue(own)
        for address in own:
            self.assertRegex(address, r"^(\[::ffff:)?127\.0\.0\.1\]?:\d+$")

    def test_a_file_of_many_ranges_gives_what_one_run_gives(self) -> None:
        path = write(Path(self.home) / "long.pcap", 12_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = self.driver.parts(
                [path], Path(self.home) / "parts", parts=3, range_bytes=1 << 20, cluster=self.cluster
            )
        self.assertEqual(report("-lr", "--merge", *made), report("-lr", path))

    def test_workers_that_are_killed_change_nothing(self) -> None:
        path = write(Path(self.home) / "long.pcap", 60_000)
        killed: list[int] = []
        over = threading.Event()

        def kill() -> None:
            # Workers by their title; this test's own cluster has started all of them.
            while not over.is_set() and len(killed) < 2:
                for entry in Path("/proc").iterdir():
                    if not entry.name.isdigit() or over.is_set() or len(killed) >= 2:
                        continue
                    try:
                        title = (entry / "cmdline").read_bytes()
                    except OSError:
                        continue
                    if title.startswith((b"ray::_map", b"ray::_reduce")):
                        os.kill(int(entry.name), signal.SIGKILL)
                        killed.append(int(entry.name))
                        time.sleep(0.3)
                time.sleep(0.005)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            self.check(self.cluster, path)
        finally:
            over.set()
            killer.join()
        self.assertTrue(killed, "no worker was seen")

    def test_an_object_store_is_read_by_fsspec(self) -> None:
        import boto3
        from moto.server import ThreadedMotoServer

        path = write(Path(self.home) / "long.pcap", 8_000)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        store = boto3.client("s3", endpoint_url=endpoint, **keys)
        store.create_bucket(Bucket="captures")
        store.upload_file(str(path), "captures", "long.pcap")
        made = self.driver.parts(
            ["s3://captures/long.pcap"],
            Path(self.home) / "parts",
            parts=2,
            range_bytes=1 << 20,
            storage={"key": "x", "secret": "x", "client_kwargs": {"endpoint_url": endpoint}},
            cluster=self.cluster,
        )
        merged = pyarrow.table(headend.merge(made))
        self.assertTrue(merged.equals(pyarrow.table(headend.trace(path))))


if __name__ == "__main__":
    unittest.main()
