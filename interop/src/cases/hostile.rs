//! Malicious subscribers and peers: hand-made datagrams from the LAC's own address.

use super::SOON;
use crate::headend::Headend;
use crate::kernel::Timed;
use crate::kernel::write_schedule;
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, ping_answered, private_file, users,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::Ipv4Addr;

/// Another peer's address on the wire, and an unassigned one.
const OTHER: &str = "10.9.0.3";
const NOBODY: &str = "10.9.0.4";

/// Datagrams of each kind, and of a flood.
const FEW: u64 = 10;
const FLOOD: u64 = 20_000;

/// How much the LNS's memory may grow in a flood.
const GROWTH_MAX: u64 = 2 << 20;

/// A subscriber's place in a tunnel.
#[derive(Clone, Copy)]
struct Place {
    tunnel: u16,
    session: u16,
    address: Ipv4Addr,
}

struct Hostile<'b> {
    bench: &'b Bench<'b>,
    lns: Headend,
    lac: Headend,
    /// `user1` in a tunnel from the LAC's first address, `user2` in one from its second.
    places: [Place; 2],
}

impl<'b> Hostile<'b> {
    fn new(bench: &'b Bench<'b>) -> Result<Self> {
        private_file(bench, "users.toml", &users(2))?;
        let settings = lns_settings("", "", "[users]\nfile = \"users.toml\"\n");
        let lns = Headend::lns(bench, &settings)?;
        let lac = Headend::lac(bench, &client_settings())?;
        for address in [OTHER, NOBODY] {
            let address = format!("{address}/24");
            bench
                .wire
                .lac
                .ip(&["address", "add", &address, "dev", "wire"])?;
        }
        let beyond = format!("{BEYOND}/32");
        bench
            .wire
            .lns
            .ip(&["address", "add", &beyond, "dev", "lo"])?;
        let mut places = Vec::new();
        for (name, from) in [("user1", crate::net::LAC), ("user2", OTHER)] {
            let from = format!("{from}/32");
            let create = ["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"];
            lac.verb(&[&create[..], &["--session", "--from", &from]].concat())?;
            let row = lns.on_line(name)?;
            let home = address(&row)?;
            move_in(&bench.wire.lac, &home)?;
            places.push(Place {
                tunnel: id(&row["tunnel"])?,
                session: id(&row["session"])?,
                address: home.parse()?,
            });
        }
        Ok(Self {
            bench,
            lns,
            lac,
            places: [places[0], places[1]],
        })
    }

    /// Sends datagrams from an address to the LNS: all of `payloads`, `count` times.
    fn inject(&self, from: &str, payloads: &[Vec<u8>], count: u64) -> Result<()> {
        let directory = &self.bench.directory;
        let packets: Vec<Timed> = (0..count)
            .flat_map(|_| payloads)
            .map(|payload| {
                Ok(Timed {
                    at_us: 0,
                    packet: datagram(from.parse()?, payload),
                })
            })
            .collect::<Result<_>>()?;
        write_schedule(&directory.join("schedule"), &packets)?;
        let mut command = self.bench.wire.lac.command(std::env::current_exe()?);
        command.arg("send");
        command.args([directory.join("schedule"), directory.join("sent")]);
        let mut process = Process::start(command, "injected", directory)?;
        let status = process.wait_for_end(SOON)?;
        ensure!(status.success(), "{}", process.printed());
        Ok(())
    }

    /// Injects a few, and waits until a counter includes all of them; none reaches the inside.
    fn is_discarded(&self, from: &str, payload: Vec<u8>, counter: &str) -> Result<()> {
        let inside = || -> Result<u64> {
            let rows = self.lns.show(&["subscribers"])?;
            Ok(rows
                .iter()
                .filter_map(|row| row["packets_in"].as_u64())
                .sum())
        };
        let (before, came) = (self.lns.counter(counter)?, inside()?);
        self.inject(from, &[payload], FEW)?;
        let mut last = 0;
        until(SOON, || {
            last = self.lns.counter(counter)? - before;
            Ok((last >= FEW).then_some(()))
        })?
        .with_context(|| format!("{counter} has {last} of {FEW} datagrams from {from}"))?;
        ensure!(last == FEW && inside()? == came, "{counter}: {last}");
        Ok(())
    }
}

/// A packet is forwarded only if the subscriber sends it from its own address, in its own session, from its own
/// peer.
pub(crate) fn reach_nobody_else(bench: &Bench<'_>) -> Result<()> {
    let hostile = Hostile::new(bench)?;
    let [own, other] = hostile.places;
    let mut expected = 0;
    // This one is exactly what the LAC would send, to check the set-up.
    hostile.inject(crate::net::LAC, &[data(own, own, own.address)], FEW)?;
    expected += FEW;
    let came = until(SOON, || {
        let row = hostile.lns.on_line("user1")?;
        Ok((row["packets_in"] == expected).then_some(()))
    })?;
    came.context("what is right does not arrive")?;

    let lac = crate::net::LAC;
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    for source in [other.address, elsewhere, BEYOND.parse()?] {
        hostile.is_discarded(lac, data(own, own, source), "edge_spoofed")?;
    }
    // Another tunnel's session id, in our own tunnel and in that tunnel.
    if other.session != own.session {
        let crossed = data(own, other, other.address);
        hostile.is_discarded(lac, crossed, "discard_unknown_session")?;
    }
    for from in [lac, NOBODY] {
        let stolen = data(other, other, other.address);
        hostile.is_discarded(from, stolen, "discard_data_wrong_source")?;
    }
    hostile.lac.all_on_line(2)?;
    hostile.lns.stop()
}

/// A subscriber that floods its link costs the LNS no memory, gets few answers, and affects no other
/// subscriber.
pub(crate) fn floods_are_bounded(bench: &Bench<'_>) -> Result<()> {
    let hostile = Hostile::new(bench)?;
    let [own, other] = hostile.places;
    let frames: [&[u8]; 4] = [
        // LCP Echo-Request; LCP Code 77; CCP Configure-Request; a PAP request.
        &[0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0],
        &[0xc0, 0x21, 77, 1, 0, 4],
        &[0x80, 0xfd, 1, 1, 0, 4],
        &[0xc0, 0x23, 1, 1, 0, 10, 2, b'x', b'y', 2, b'a', b'b'],
    ];
    let payloads: Vec<Vec<u8>> = frames.iter().map(|frame| l2tp(own, own, frame)).collect();
    let server = || -> Result<Value> { Ok(hostile.lns.show(&["server"])?.remove(0)) };
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
    // The first flood makes the LNS allocate every buffer that so many datagrams need.
    hostile.inject(crate::net::LAC, &payloads, FLOOD / 4)?;
    let (before, sent) = (server()?, hostile.lns.counter("udp_sent")?);
    let received = hostile.lns.counter("udp_received")?;
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| hostile.inject(crate::net::LAC, &payloads, FLOOD / 4));
        let home = other.address.to_string();
        let pinged = ping_answered(&bench.wire.lac, BEYOND, &["-c", "20", "-I", &home]);
        flood.join().expect("it does not panic").and(pinged)
    })?;
    let after = server()?;
    let received = hostile.lns.counter("udp_received")? - received;
    let sent = hostile.lns.counter("udp_sent")? - sent;
    let flood = hostile.lns.counter("edge_ppp-flood")?;
    let grown = number(&after, "rss_bytes").saturating_sub(number(&before, "rss_bytes"));
    let cpu_us = ["user_us", "system_us"]
        .iter()
        .map(|name| number(&after, name) - number(&before, name))
        .sum::<u64>();
    let told = format!(
        "{received} datagrams came, {sent} went; {flood} were too many in a second; {grown} octets more memory; \
         {:.1} us of processor each\n",
        cpu_us as f64 / received.max(1) as f64
    );
    std::fs::write(bench.directory.join("counts.txt"), &told)?;
    ensure!(grown <= GROWTH_MAX, "{told}");
    ensure!(received > FLOOD / 2 && flood > received / 2, "{told}");
    ensure!(sent < received / 4, "{told}");
    let others = hostile.lns.on_line("user2")?;
    ensure!(others["up_s"].as_f64().is_some(), "{others}");
    hostile.lns.stop()
}

fn id(value: &Value) -> Result<u16> {
    let id = value.as_u64().and_then(|id| u16::try_from(id).ok());
    id.with_context(|| format!("an id of version 2 in {value}"))
}

/// A UDP packet from `source` to a host beyond, with the tunnel of one subscriber and the session of the other.
fn data(tunnel: Place, session: Place, source: Ipv4Addr) -> Vec<u8> {
    let beyond: Ipv4Addr = BEYOND.parse().expect("an address");
    let packet = ipv4(source, beyond, &udp(4_000, 9, b"hello"));
    l2tp(tunnel, session, &[&[0x00, 0x21], &packet[..]].concat())
}

/// L2TP's data header (RFC 2661, section 3.1), PPP's address and control, a frame, and space for the sender's
/// number.
fn l2tp(tunnel: Place, session: Place, frame: &[u8]) -> Vec<u8> {
    let mut out = vec![0x00, 0x02];
    out.extend(tunnel.tunnel.to_be_bytes());
    out.extend(session.session.to_be_bytes());
    out.extend([0xff, 0x03]);
    out.extend(frame);
    out.extend([0; 4]);
    out
}

/// An L2TP datagram from the LAC's port.
fn datagram(from: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let lns: Ipv4Addr = crate::net::LNS.parse().expect("an address");
    ipv4(from, lns, &udp(1_701, 1_701, payload))
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("a short one");
    let fields = [from, to, length, 0];
    let mut out: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_be_bytes())
        .collect();
    out.extend(payload);
    out
}

fn ipv4(from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).expect("a short one");
    let mut out = vec![0x45, 0];
    out.extend(length.to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    out.extend(from.octets());
    out.extend(to.octets());
    let sum: u32 = out
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from((folded & 0xffff) + (folded >> 16)).expect("16 bits");
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend(payload);
    out
}
