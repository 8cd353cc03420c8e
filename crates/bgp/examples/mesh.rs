//! A full mesh of idle routers in one process, in virtual time: the cost of a session in time and memory.
//!
//! `cargo run --release -p headend-bgp --example mesh -- 1000 30` brings up 1,000 routers at 1 s / 3 s and runs 30 s of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant as Clock;

use base::{Duration, Instant};
use bgp::{ConnId, Event, PeerConfig, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};

struct Mesh {
    speakers: Vec<Speaker>,
    /// The other end of each connection, by speaker and index.
    links: Vec<Vec<Option<(u32, ConnId)>>>,
    wakes: BinaryHeap<Reverse<(Instant, u32)>>,
    armed: Vec<Option<Instant>>,
    touched: Vec<u32>,
    batch: Vec<ConnId>,
    ends: Vec<Option<(u32, ConnId)>>,
    messages: u64,
}

fn address(router: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + router))
}

impl Mesh {
    fn new(routers: u32) -> Self {
        let settings = |passive| {
            Arc::new(PeerSettings {
                hold_time_s: 3,
                passive,
                ..PeerSettings::default()
            })
        };
        let both = [settings(false), settings(true)];
        let speakers = (0..routers)
            .map(|number| {
                let mut config =
                    SpeakerConfig::new(64_512 + number, Ipv4Addr::from_bits(number + 1));
                config.limits.recent_events_max = Some(16);
                config.peers = (0..routers)
                    .filter(|other| *other != number)
                    .map(|other| {
                        let settings = both[usize::from(other > number)].clone();
                        let asn = RemoteAsn::Exactly(64_512 + other);
                        PeerConfig::new(address(other), asn, settings)
                    })
                    .collect();
                let mut seed = [0; 32];
                seed[..4].copy_from_slice(&number.to_le_bytes());
                Speaker::new(config, seed)
            })
            .collect();
        Self {
            speakers,
            links: vec![Vec::new(); routers as usize],
            wakes: BinaryHeap::new(),
            armed: vec![None; routers as usize],
            touched: Vec::new(),
            batch: Vec::new(),
            ends: Vec::new(),
            messages: 0,
        }
    }

    fn link(&mut self, from: (u32, ConnId), to: (u32, ConnId)) {
        let links = &mut self.links[from.0 as usize];
        let at = from.1.index() as usize;
        if links.len() <= at {
            links.resize(at + 1, None);
        }
        links[at] = Some(to);
    }

    /// Delivers the messages of a speaker.
    fn drain(&mut self, number: u32, out: &mut Vec<u8>, now: Instant) {
        // KEEPALIVEs are collected and delivered together, so that the processor loads the memory of many sessions at
        // once instead of waiting for each.
        let mut batch = core::mem::take(&mut self.batch);
        let mut others = Vec::new();
        let speaker = &mut self.speakers[number as usize];
        while let Some(conn) = speaker.poll_ready() {
            out.clear();
            while speaker.fill(conn, out, 65_536, now) {}
            if *out == wire::bgp::KEEPALIVE {
                batch.push(conn);
            } else {
                others.push((conn, core::mem::take(out)));
            }
        }
        let links = &self.links[number as usize];
        let mut ends = core::mem::take(&mut self.ends);
        ends.extend(batch.drain(..).map(|conn| links[conn.index() as usize]));
        for (other, end) in ends.drain(..).flatten() {
            self.messages += 1;
            let _ = self.speakers[other as usize].receive(end, &wire::bgp::KEEPALIVE, now);
        }
        self.batch = batch;
        self.ends = ends;
        for (conn, octets) in others {
            let Some((other, end)) = self.links[number as usize][conn.index() as usize] else {
                continue;
            };
            self.messages += 1;
            let _ = self.speakers[other as usize].receive(end, &octets, now);
            self.touched.push(other);
        }
        while let Some(event) = self.speakers[number as usize].poll_event() {
            if let Event::Connect { conn, remote, .. } = event {
                let IpAddr::V4(ip) = remote.ip() else {
                    continue;
                };
                let other = ip.to_bits() - 0x0a00_0001;
                let local = SocketAddr::new(address(number), 1_024);
                match self.speakers[other as usize].accept(local, remote, now) {
                    Ok(end) => {
                        self.link((number, conn), (other, end));
                        self.link((other, end), (number, conn));
                        self.speakers[number as usize].connected(conn, local, now);
                        self.touched.push(other);
                        self.touched.push(number);
                    }
                    Err(_) => self.speakers[number as usize].connect_failed(conn, now),
                }
            }
        }
        let wake = self.speakers[number as usize]
            .poll_timeout()
            .map(|(at, _)| at);
        if wake != self.armed[number as usize] {
            self.armed[number as usize] = wake;
            if let Some(at) = wake {
                self.wakes.push(Reverse((at, number)));
            }
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>, now: Instant) {
        while let Some(number) = self.touched.pop() {
            self.drain(number, out, now);
        }
    }

    fn run(&mut self, until: Instant) {
        let mut out = Vec::new();
        while let Some(&Reverse((at, number))) = self.wakes.peek() {
            if at > until {
                break;
            }
            self.wakes.pop();
            if self.armed[number as usize] != Some(at) {
                continue;
            }
            self.armed[number as usize] = None;
            self.speakers[number as usize].handle_timeout(at);
            self.speakers[number as usize].drained(at);
            self.drain(number, &mut out, at);
            self.settle(&mut out, at);
        }
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let routers: u32 = args.next().unwrap_or(100);
    let span_s = u64::from(args.next().unwrap_or(30));
    let before = resident_kib();
    let mut mesh = Mesh::new(routers);
    let begun = Clock::now();
    let start = Instant::from_nanos(1_000_000_000);
    for number in 0..routers {
        // The routers start one after the other within a second, as processes would.
        let now = start + Duration::from_micros(1_000_000 / u64::from(routers) * u64::from(number));
        mesh.run(now);
        mesh.speakers[number as usize].start(now);
        mesh.touched.push(number);
        mesh.settle(&mut Vec::new(), now);
    }
    mesh.run(start + Duration::from_secs(15));
    let ends: u64 = mesh
        .speakers
        .iter()
        .map(|s| u64::from(s.established()))
        .sum();
    let up = begun.elapsed();
    println!(
        "{ends} ends up in {up:?}, {} octets an end",
        (resident_kib() - before) * 1024 / ends.max(1)
    );
    let messages = mesh.messages;
    let begun = Clock::now();
    mesh.run(start + Duration::from_secs(15 + span_s));
    let took = begun.elapsed();
    let still: u64 = mesh
        .speakers
        .iter()
        .map(|s| u64::from(s.established()))
        .sum();
    println!(
        "{span_s} s of them in {took:?}: {:.1} ns an end and second, {} messages, {still} ends still up",
        took.as_nanos() as f64 / (ends.max(1) * span_s) as f64,
        mesh.messages - messages,
    );
}
