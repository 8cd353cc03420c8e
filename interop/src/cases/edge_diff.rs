//! `headend trace diff` through our own edge: packets that nftables drops where they leave a tunnel or PPPoE are exactly
//! those that it lists, from captures of both sides; and so are those that the edge itself dropped, from the one capture
//! of `headend capture subscriber`.
//!
//! ```text
//! (client) iperf3, ping -- outside -- headend -- wire == x [nftables] y == wire -- headend -- inside -- (server)
//!                          outside.pcap             near.pcap      far.pcap                   inside.pcap
//! ```
//!
//! The truth is a comparison of datagrams by what iperf3 writes into them, and the counters of nftables.

use super::SOON;
use crate::headend::Headend;
use crate::net::{LAC, LNS, Namespace, join};
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, ping_answered, private_file, users,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Bytes of each of iperf3's transfers by TCP, and datagrams of each of those by UDP.
const OCTETS: &str = "3000000";
const DATAGRAMS: &str = "2000";

/// Bytes before the first packet of a capture, before each packet, and of Ethernet's header.
const FILE: usize = 24;
const RECORD: usize = 16;
const ETHERNET: usize = 14;

/// The link type of packets without a link layer, as on a TUN device.
const RAW: u32 = 101;

/// Drops every 50th packet of more than so many bytes as it enters the bridge between both ends, in either direction.
const DROPS: &str = "table netdev lossy {
  chain up { type filter hook ingress device \"x\" priority 0; meta length > BYTES numgen inc mod 50 == 7 counter drop; }
  chain down { type filter hook ingress device \"y\" priority 0; meta length > BYTES numgen inc mod 50 == 9 counter drop; }
}";

/// A datagram of iperf3: its source, and the time and the number that iperf3 writes into it.
type Name = (u32, u16, [u8; 12]);

fn little(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(octets))
}

fn big(octets: &[u8], at: usize) -> Option<u16> {
    let octets = octets.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(octets))
}

/// The subscriber's IPv4 packets in a capture, with their numbers. The last one may be written in part so far.
fn packets(capture: &[u8]) -> Vec<(u64, &[u8])> {
    let mut packets = Vec::new();
    let (mut at, mut number) = (FILE, 0);
    while let Some(length) = little(capture, at + 8) {
        let end = at + RECORD + length as usize;
        let Some(frame) = capture.get(at + RECORD..end) else {
            break;
        };
        let packet = match little(capture, 20) {
            Some(RAW) => Some(frame),
            _ => inner(frame),
        };
        number += 1;
        packets.extend(packet.map(|packet| (number, packet)));
        at = end;
    }
    packets
}

/// A capture's datagrams of iperf3, by number of the packet.
fn names(capture: &[u8]) -> BTreeMap<u64, Name> {
    let named = packets(capture)
        .into_iter()
        .map(|(number, packet)| Some((number, name(packet)?)));
    named.flatten().collect()
}

/// The IP packet in a frame of Ethernet with L2TP or PPPoE (RFC 2661, RFC 2516).
fn inner(frame: &[u8]) -> Option<&[u8]> {
    let ppp = match big(frame, 12)? {
        0x8864 => frame.get(ETHERNET + 6..)?,
        0x0800 => {
            let l2tp = frame.get(ETHERNET + 28..)?;
            let flags = big(l2tp, 0)?;
            let length = if flags & 0x4000 != 0 { 2 } else { 0 };
            let sequence = if flags & 0x0800 != 0 { 4 } else { 0 };
            let is_data = flags & 0x8000 == 0;
            is_data
                .then(|| l2tp.get(6 + length + sequence..))
                .flatten()?
        }
        _ => return None,
    };
    let ppp = ppp.strip_prefix(&[0xff, 0x03]).unwrap_or(ppp);
    match ppp {
        [0x00, 0x21, packet @ ..] | [0x21, packet @ ..] => Some(packet),
        _ => None,
    }
}

fn name(packet: &[u8]) -> Option<Name> {
    let header = usize::from(packet.first()? & 15) * 4;
    let source = u32::from_be_bytes(packet.get(12..16)?.try_into().ok()?);
    let port = big(packet, header)?;
    let number = packet.get(header + 8..header + 20)?.try_into().ok()?;
    (packet.get(9) == Some(&17)).then_some((source, port, number))
}

/// The names that the first capture has and the second has not, of packets from that address or, if `is_from` is false,
/// of all others.
fn missing(
    near: &BTreeMap<u64, Name>,
    far: &BTreeMap<u64, Name>,
    home: u32,
    is_from: bool,
) -> Vec<Name> {
    let mut far: Vec<Name> = far.values().copied().collect();
    far.sort_unstable();
    let mut missing: Vec<Name> = near
        .values()
        .copied()
        .filter(|name| (name.0 == home) == is_from && far.binary_search(name).is_err())
        .collect();
    missing.sort_unstable();
    missing
}

fn diff(bench: &Bench<'_>, words: &[&str]) -> Result<Vec<Value>> {
    let output = Command::new(bench.headend)
        .args(["trace", "diff", "-q", "--json"])
        .args(words)
        .current_dir(&bench.directory)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    std::fs::write(bench.directory.join("diff.json"), &text)?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{words:?}: {errors}");
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect()
}

/// The lost packets that a comparison lists, by the point that saw them.
fn lost(lines: &[Value], point: &str, names: &BTreeMap<u64, Name>) -> Result<Vec<Name>> {
    // Each interface sends solicitations by itself, which no tunnel here carries.
    let is_own = |line: &&Value| {
        line["flow"]
            .as_str()
            .is_some_and(|flow| flow.starts_with("fe80:"))
    };
    let lost = lines
        .iter()
        .filter(|line| line["kind"] == "diff_lost" && line["seen_at"] == point && !is_own(line));
    let mut lost: Vec<Name> = lost
        .map(|line| names.get(&line["packet"].as_u64()?).copied())
        .collect::<Option<_>>()
        .context("a lost packet is none of iperf3's datagrams")?;
    lost.sort_unstable();
    Ok(lost)
}

/// Compares the captures of two points, the first nearer to the client, in both orders. Returns the numbers of packets that
/// were lost up and down.
fn are_exact(bench: &Bench<'_>, home: u32, one: &str, other: &str) -> Result<[u64; 2]> {
    let read = |name: &str| {
        let octets = std::fs::read(bench.directory.join(name)).context(name.to_owned())?;
        anyhow::Ok(names(&octets))
    };
    let (near, far) = (read(one)?, read(other)?);
    let up = missing(&near, &far, home, true);
    let down = missing(&far, &near, home, false);
    for (files, points) in [([one, other], ["A", "B"]), ([other, one], ["B", "A"])] {
        let lines = diff(bench, &files)?;
        for (point, names, expected) in [(points[0], &near, &up), (points[1], &far, &down)] {
            let lost = lost(&lines, point, names)?;
            ensure!(
                lost == *expected,
                "{files:?} at {point}: {} lost, not {}",
                lost.len(),
                expected.len()
            );
        }
        let found = lines.last().context("a summary")?;
        for way in ["a2b", "b2a"] {
            ensure!(found[way]["only_at_far_point"]["packets"] == 0, "{found}");
        }
        ensure!(
            found["clock"]["steps"] == Value::Array(Vec::new()),
            "{found}"
        );
    }
    Ok([up.len() as u64, down.len() as u64])
}

/// Runs tcpdump until it is dropped.
fn capture(bench: &Bench<'_>, namespace: &Namespace, device: &str, file: &str) -> Result<Process> {
    let mut command = namespace.command("tcpdump");
    command
        .args([
            "-Z",
            "root",
            "-U",
            "--immediate-mode",
            "-n",
            "-s",
            "200",
            "-B",
            "8192",
            "-i",
            device,
            "-w",
        ])
        .arg(bench.directory.join(file))
        .arg("--time-stamp-precision=nano");
    // The log of an earlier run.
    let _ = std::fs::remove_file(bench.directory.join(format!("tcpdump-{file}.log")));
    let mut process = Process::start(command, &format!("tcpdump-{file}"), &bench.directory)?;
    process.wait_for("listening on", SOON)?;
    Ok(process)
}

/// Loads a table of nftables.
fn load(bench: &Bench<'_>, namespace: &Namespace, rules: &str) -> Result<()> {
    let file = bench.directory.join("rules");
    std::fs::write(&file, rules)?;
    let output = namespace.command("nft").arg("-f").arg(&file).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nft: {said}");
    Ok(())
}

/// The packets that both rules have dropped.
fn dropped(middle: &Namespace) -> Result<[u64; 2]> {
    let output = middle.command("nft").args(["list", "ruleset"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts = text
        .lines()
        .filter(|line| line.contains("counter packets"))
        .map(|line| super::number_after(line, "counter packets"));
    let mut next = || counts.next().with_context(|| text.clone())?;
    Ok([next()?, next()?])
}

/// Puts a bridge into the wire between both ends. Without offloads, each datagram of a tunnel is a packet there.
fn bridged(bench: &Bench<'_>, name: &str) -> Result<Namespace> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let middle = Namespace::new(name.to_owned())?;
    near.ip(&["link", "delete", "wire"])?;
    middle.ip(&["link", "add", "bridge", "type", "bridge"])?;
    middle.ip(&["link", "set", "bridge", "up"])?;
    for (end, address, port) in [(near, LAC, "x"), (far, LNS, "y")] {
        join((end, "wire"), (&middle, port))?;
        end.ip(&["address", "add", &format!("{address}/24"), "dev", "wire"])?;
        end.ip(&["link", "set", "wire", "up"])?;
        middle.ip(&["link", "set", port, "master", "bridge", "up"])?;
        without_offloads(end, "wire")?;
        without_offloads(&middle, port)?;
    }
    Ok(middle)
}

fn without_offloads(namespace: &Namespace, device: &str) -> Result<()> {
    let mut command = namespace.command("ethtool");
    command.args(["-K", device, "tso", "off", "gso", "off", "gro", "off"]);
    let output = command.args(["tx-udp-segmentation", "off"]).output();
    let output = output.context("ethtool")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ethtool: {said}");
    Ok(())
}

/// iperf3 in both directions: `how` is the protocol and the amount.
fn traffic(bench: &Bench<'_>, home: &str, how: &[&str]) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let mut server = far.command("iperf3");
    server.args(["-s", "-B", BEYOND, "--forceflush"]);
    let mut server = Process::start(server, "iperf3", &bench.directory)?;
    let before = server.lines_with("Server listening");
    for (number, way) in [&[][..], &["-R"]].into_iter().enumerate() {
        server.wait_for_lines("Server listening", before + number + 1, SOON)?;
        let mut client = near.command("iperf3");
        client.args(["-c", BEYOND, "-B", home, "-P", "2"]).args(how);
        let output = client.args(way).output().context("iperf3")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "iperf3: {said}");
    }
    Ok(())
}

/// The pings around a run, requests and replies: they are the last packets of its captures.
const PINGS: usize = 12;

/// Captures a run at four places.
fn captured(
    bench: &Bench<'_>,
    middle: &Namespace,
    home: &str,
    run: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let places = [
        (near, "outside", "outside.pcap"),
        (middle, "x", "near.pcap"),
        (middle, "y", "far.pcap"),
        (far, "inside", "inside.pcap"),
    ];
    let captures: Vec<Process> = places
        .iter()
        .map(|&(namespace, device, file)| capture(bench, namespace, device, file))
        .collect::<Result<_>>()?;
    ping_answered(near, BEYOND, &["-c", "3", "-I", home])?;
    run()?;
    // What iperf3 left in queues.
    std::thread::sleep(std::time::Duration::from_millis(500));
    ping_answered(near, BEYOND, &["-c", "3", "-I", home])?;
    let has_all = |file: &str| {
        let octets = std::fs::read(bench.directory.join(file))?;
        let packets = packets(&octets);
        let pings = packets
            .iter()
            .filter(|(_, packet)| packet.get(9) == Some(&1));
        anyhow::Ok(pings.count() == PINGS)
    };
    for (_, _, file) in places {
        until(SOON, || Ok(has_all(file)?.then_some(())))?
            .with_context(|| format!("{file} lacks pings"))?;
    }
    captures
        .into_iter()
        .try_for_each(|one| one.stop().map(drop))
}

/// Pairs of captures, and whether what is dropped shows between them. On a busy machine, daemons and TUN devices lose packets
/// too, but the bridge does not: at the first pair.
const PAIRS: [(&str, &str, bool); 5] = [
    ("near.pcap", "far.pcap", true),
    ("outside.pcap", "near.pcap", false),
    ("outside.pcap", "far.pcap", true),
    ("near.pcap", "inside.pcap", true),
    ("outside.pcap", "inside.pcap", true),
];

/// Whether a pair shows what was dropped, and between the ports of the bridge nothing else.
fn is_as_dropped(pair: usize, lost: [u64; 2], dropped: [u64; 2]) -> Result<()> {
    let is_exact = lost == dropped;
    let is_more = pair > 0 && lost[0] >= dropped[0] && lost[1] >= dropped[1];
    ensure!(
        is_exact || is_more,
        "{lost:?} were lost, {dropped:?} dropped"
    );
    Ok(())
}

/// Runs iperf3 while packets are dropped. Returns how many were, on their way up and down.
fn run(
    bench: &Bench<'_>,
    middle: &Namespace,
    home: &str,
    bytes: &str,
    how: &[&str],
) -> Result<[u64; 2]> {
    let mut counts = [0, 0];
    captured(bench, middle, home, || {
        load(bench, middle, &DROPS.replace("BYTES", bytes))?;
        traffic(bench, home, how)?;
        counts = dropped(middle)?;
        load(bench, middle, "flush ruleset")
    })?;
    ensure!(counts.iter().all(|&count| count > 20), "{counts:?}");
    Ok(counts)
}

/// Datagrams are lost one by one. Of TCP, the TUN devices join segments, so that a lost one is a part of a packet.
fn drops_are_exact(bench: &Bench<'_>, middle: &Namespace, home: &str, segment: u64) -> Result<()> {
    let number = u32::from(home.parse::<std::net::Ipv4Addr>()?);
    let datagrams = ["-u", "-b", "6M", "-l", "1200", "-k", DATAGRAMS];
    let counts = run(bench, middle, home, "1000", &datagrams)?;
    for (at, (one, other, shows)) in PAIRS.into_iter().enumerate() {
        let lost = are_exact(bench, number, one, other)?;
        let expected = if shows { counts } else { [0, 0] };
        is_as_dropped(at, lost, expected).with_context(|| format!("{one}, {other}"))?;
    }
    let counts = run(bench, middle, home, "1400", &["-n", OCTETS])?;
    for (at, (one, other, shows)) in PAIRS.into_iter().enumerate() {
        let expected = counts.map(|count| if shows { count * segment } else { 0 });
        for (files, ways) in [
            ([one, other], ["a2b", "b2a"]),
            ([other, one], ["b2a", "a2b"]),
        ] {
            let lines = diff(bench, &files)?;
            let found = lines.last().context("a summary")?;
            let lost = ways.map(|way| found[way]["lost"]["bytes"].as_u64().unwrap_or(0));
            let is_whole = ways
                .iter()
                .all(|way| found[way]["only_at_far_point"]["packets"] == 0);
            ensure!(is_whole, "{files:?}: {found}");
            is_as_dropped(at, lost, expected).with_context(|| format!("{files:?}"))?;
        }
    }
    Ok(())
}

/// L2TPv2 with PPP between our LAC and our LNS.
pub(crate) fn through_l2tp(bench: &Bench<'_>) -> Result<()> {
    let middle = bridged(bench, "diff-l2tp")?;
    private_file(bench, "users.toml", &users(1))?;
    let sections = "[users]\nfile = \"users.toml\"\n";
    let lns = Headend::lns(bench, &lns_settings("", "offloads = false", sections))?;
    let lac = Headend::lac(bench, &(client_settings() + "offloads = false\n"))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    let home = address(&lns.on_line("user1")?)?;
    move_in(near, &home)?;
    // The MTU is 1,462 bytes, the headers of IP and TCP with time stamps are 52.
    drops_are_exact(bench, &middle, &home, 1410)?;
    let lines = diff(bench, &["outside.pcap", "near.pcap"])?;
    let kinds = &lines.last().context("a summary")?["b"]["encapsulations"];
    ensure!(kinds.to_string().contains("l2tp"), "{kinds}");
    drop(lac);
    lns.stop()
}

/// PPPoE between our client and our access concentrator.
pub(crate) fn through_pppoe(bench: &Bench<'_>) -> Result<()> {
    let middle = bridged(bench, "diff-pppoe")?;
    private_file(bench, "users.toml", &users(1))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let sections = "[users]\nfile = \"users.toml\"\n[pppoe]\nac_name = \"bng1\"\n\
                    [[pppoe.interface]]\nname = \"wire\"\n";
    let server = lns_settings("", "offloads = false", sections);
    let server = Headend::in_namespace(bench, far, "server", &server)?;
    let client = client_settings().replace("[client]", "[client]\npppoe = \"wire\"");
    let client = client.replace("user{n}", "user1") + "offloads = false\n";
    let client = Headend::in_namespace(bench, near, "client", &client)?;
    let home = address(&server.on_line("user1")?)?;
    move_in(near, &home)?;
    drops_are_exact(bench, &middle, &home, 1440)?;
    let lines = diff(bench, &["outside.pcap", "near.pcap"])?;
    let kinds = &lines.last().context("a summary")?["b"]["encapsulations"];
    ensure!(kinds.to_string().contains("pppoe"), "{kinds}");
    drop(client);
    server.stop()
}

/// A filter that denies pings, and one that does not.
const FILTERS: [&str; 2] = [
    "filter pings\nin\n  deny icmp from any to any\n  default accept\nout\n  default accept\n",
    "filter pings\nin\n  default accept\nout\n  default accept\n",
];

/// One capture of a subscriber has both sides of the edge: the packets that its filter denied are lost between them.
pub(crate) fn of_one_capture(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(1))?;
    private_file(bench, "filters", FILTERS[1])?;
    let sections =
        "[users]\nfile = \"users.toml\"\n[filter]\nfile = \"filters\"\ndefault = \"pings\"\n";
    let lns = Headend::lns(bench, &lns_settings("", "", sections))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    let home = address(&lns.on_line("user1")?)?;
    move_in(near, &home)?;
    let mut command = Command::new(bench.headend);
    command.args(["capture", "subscriber", "user1"]);
    command.arg(bench.directory.join("user1.pcapng"));
    command
        .args(["--seconds", "60", "--snap", "128", "--socket"])
        .arg(lns.socket());
    let mut capture = Process::start(command, "capture", &bench.directory)?;
    until(SOON, || {
        let size = std::fs::metadata(bench.directory.join("user1.pcapng"));
        Ok(size.is_ok_and(|file| file.len() > 0).then_some(()))
    })?
    .context("no capture")?;
    let mut pings = near.command("ping");
    pings.args([
        "-n", "-i", "0.02", "-c", "150", "-W", "1", "-I", &home, BEYOND,
    ]);
    let mut pings = Process::start(pings, "ping", &bench.directory)?;
    pings.wait_for("icmp_seq=20 ", SOON)?;
    let denied = lns.counter("edge_filtered")?;
    for filter in FILTERS {
        private_file(bench, "filters", filter)?;
        lns.verb(&["reload"])?;
        if filter == FILTERS[0] {
            until(SOON, || {
                Ok((lns.counter("edge_filtered")? > denied + 25).then_some(()))
            })?
            .context("nothing was denied")?;
        }
    }
    pings.wait_for_end(SOON)?;
    traffic(bench, &home, &["-n", OCTETS])?;
    let denied = lns.counter("edge_filtered")? - denied;
    capture.signal(rustix::process::Signal::INT)?;
    capture.wait_for_end(SOON)?;
    ensure!(
        capture.printed().contains(" 0 lost"),
        "{}",
        capture.printed()
    );
    let lines = diff(bench, &["user1.pcapng"])?;
    let found = lines.last().context("a summary")?;
    // From the subscriber, packets go from outside (B) to inside (A).
    ensure!(
        found["b2a"]["lost"]["packets"] == denied,
        "{denied}: {found}"
    );
    for way in ["a2b", "b2a"] {
        ensure!(
            found[way]["only_at_far_point"]["packets"] == 0
                && found[way]["bytes"].as_u64() > Some(OCTETS.parse::<u64>()? / 4),
            "{found}"
        );
    }
    ensure!(found["clock"]["same"] == true, "{found}");
    drop(lac);
    lns.stop()
}
