"""CPU time of `headend` and of other Python packages for packets and payload of each connection of one capture.

    python measure/programs.py --runs 3 capture.pcap

A line of JSON for each program that is installed: the least CPU time over the runs, of this process and its children, without
imports; and the number of packets and of flows that it found. The last lines are for Arrow: the time in which pyarrow, polars and
DuckDB take the table, and how many of its columns of numbers pyarrow and polars share in memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import headend


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


Found = tuple[int, int]
"""Numbers of packets and of flows."""


def of_flows(flows: dict[Any, list[int]]) -> Found:
    return sum(packets for packets, _ in flows.values()), len(flows)


def with_headend(path: str) -> Found:
    import pyarrow

    table = pyarrow.table(headend.trace(path, threads=1))
    return sum(table["packets"].to_pylist()), table.num_rows


def with_dpkt(path: str) -> Found:
    import dpkt

    flows: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    with open(path, "rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            tcp = getattr(ip, "data", None)
            if isinstance(tcp, dpkt.tcp.TCP):
                flow = flows[frozenset([(ip.src, tcp.sport), (ip.dst, tcp.dport)])]
                flow[0] += 1
                flow[1] += len(tcp.data)
    return of_flows(flows)


def with_scapy(path: str) -> Found:
    from scapy.layers.inet import IP, TCP
    from scapy.layers.inet6 import IPv6
    from scapy.utils import PcapReader

    flows: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    with PcapReader(path) as packets:
        for packet in packets:
            ip = packet.getlayer(IP) or packet.getlayer(IPv6)
            tcp = packet.getlayer(TCP)
            if ip is not None and tcp is not None:
                flow = flows[frozenset([(ip.src, tcp.sport), (ip.dst, tcp.dport)])]
                flow[0] += 1
                flow[1] += len(tcp.payload)
    return of_flows(flows)


def with_pyshark(path: str) -> Found:
    import asyncio

    import pyshark

    asyncio.set_event_loop(asyncio.new_event_loop())
    flows: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    packets = pyshark.FileCapture(path, display_filter="tcp", keep_packets=False)
    for packet in packets:
        flow = flows[packet.tcp.stream]
        flow[0] += 1
        flow[1] += int(packet.tcp.len)
    packets.close()
    return of_flows(flows)


def with_nfstream(path: str) -> Found:
    import nfstream

    streamer = nfstream.NFStreamer(
        source=path, statistical_analysis=True, n_dissections=0, n_meters=1, system_visibility_mode=0
    )
    flows = [flow for flow in streamer if flow.protocol == 6]
    return sum(flow.bidirectional_packets for flow in flows), len(flows)


PROGRAMS: dict[str, Callable[[str], Found]] = {
    "headend": with_headend,
    "nfstream": with_nfstream,
    "dpkt": with_dpkt,
    "scapy": with_scapy,
    "pyshark": with_pyshark,
}


def least(runs: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time, and the last result."""
    times, found = [], None
    for _ in range(runs):
        begin = cpu_seconds()
        found = work()
        times.append(cpu_seconds() - begin)
    return round(min(times), 4), found


def arrow(path: str, runs: int) -> None:
    """Figures of readers of the table."""
    import duckdb
    import polars
    import pyarrow

    def by_address(held: Any) -> Any:
        # DuckDB finds the variable by its name.
        return duckdb.sql("select b_address, sum(packets) from held group by 1").fetchall()

    found = headend.trace(path)
    table = pyarrow.table(found).combine_chunks()
    frame = polars.DataFrame(table)
    numbers = [name for name in table.column_names if pyarrow.types.is_int64(table[name].type)]
    shared = 0
    for name in numbers:
        there, here = frame[name].to_arrow(), table[name].chunk(0)
        shared += there.buffers()[1].address == here.buffers()[1].address
    print(json.dumps({"rows": table.num_rows, "bytes": table.nbytes, "numbers": len(numbers), "shared": shared}))
    reads: dict[str, Callable[[], Any]] = {
        "pyarrow.table(found)": lambda: pyarrow.table(found),
        "polars.DataFrame(found)": lambda: polars.DataFrame(found),
        "polars.DataFrame(table)": lambda: polars.DataFrame(table),
        "duckdb.sql, a sum by address, of found": lambda: by_address(found),
        "duckdb.sql, a sum by address, of table": lambda: by_address(table),
    }
    for name, read in reads.items():
        seconds, _ = least(runs, read)
        print(json.dumps({"read": name, "cpu": seconds}))


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("capture")
    given.add_argument("--runs", type=int, default=3)
    given.add_argument("--only", action="append", choices=list(PROGRAMS))
    given.add_argument("--arrow", action="store_true", help="the figures for Arrow alone")
    args = given.parse_args()
    for name, work in PROGRAMS.items():
        if args.arrow or (args.only and name not in args.only):
            continue
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        seconds, (packets, flows) = least(args.runs, partial(work, args.capture))
        print(json.dumps({"program": name, "cpu": seconds, "packets": packets, "flows": flows}), flush=True)
    if args.arrow or not args.only:
        arrow(args.capture, args.runs)


if __name__ == "__main__":
    main()
