//! The cost of a full table, in memory: prefixes from one peer through a [`Rib`] to another, and then withdrawn.
//!
//! `cargo run --release -p headend-bgp --example feed -- [PREFIXES] [SETS]` runs with a quarter, a half and all of the
//! prefixes. For each run it prints the time per prefix (reading messages, deciding, and writing messages for the other
//! peer) and the memory of the process, which holds both peers' tables.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use base::Instant as Now;
use bgp::PeerId;
use bgp::policy::Policy;
use bgp::rib::{PeerTraits, Rib, RibConfig};
use wire::bgp::attr::{self, code};
use wire::bgp::{
    HEADER_LEN, NextHop, Nlri, Prefix, SegmentKind, Update, UpdateContext, UpdateWriter, frame,
};

/// Octets that are read in a turn, and that a peer accepts at once.
const TURN: usize = 64 * 1_024;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut next = |usual| numbers.next().and_then(Result::ok).unwrap_or(usual);
    let (prefixes, sets) = (next(1_000_000), next(166_000));
    println!(
        "prefixes      sets  feed ns each  withdraw ns each  messages      RSS MB  of which empty"
    );
    for part in [4, 2, 1] {
        run(prefixes / part, sets / part);
    }
}

fn run(prefixes: u32, sets: u32) {
    let empty = resident_mb();
    let mut rib = Rib::new(RibConfig {
        asn: 65_000,
        router_id: 1,
        cluster_id: None,
        prefers_oldest: false,
        seed: 1,
    });
    for (peer, asn) in [(0, 65_001), (1, 65_002)] {
        let address = Ipv4Addr::new(192, 0, 2, 1 + peer as u8);
        let mut traits = PeerTraits::new(65_000, asn, peer, address.into());
        traits.import = Policy::accept();
        traits.export = Policy::accept();
        traits.local_v4 = Some(Ipv4Addr::new(192, 0, 2, 254));
        rib.open_peer(PeerId(peer), traits);
    }
    let mut feed = Feed::new(prefixes, sets, false);
    let (fed, messages) = through(&mut rib, &mut feed);
    let resident = resident_mb();
    if std::env::var_os("FEED_MEMORY").is_some() {
        println!("{:?}", rib.memory());
    }
    let mut feed = Feed::new(prefixes, sets, true);
    let (withdrawn, _) = through(&mut rib, &mut feed);
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(prefixes);
    println!(
        "{prefixes:8}  {sets:8}  {:12.0}  {:16.0}  {messages:8}  {resident:10.1}  {empty:14.1}",
        each(fed),
        each(withdrawn)
    );
}

/// Passes a whole feed through. Returns the time without that of the feed, and the number of messages to the other
/// peer.
fn through(rib: &mut Rib, feed: &mut Feed) -> (Duration, u64) {
    let context = UpdateContext::default();
    let mut taken = Duration::ZERO;
    let mut messages = 0;
    let mut input = Vec::new();
    let mut output = Vec::with_capacity(TURN + 4_096);
    while feed.fill(&mut input) {
        let start = Instant::now();
        let mut rest = &input[..];
        while let Ok(Some((_, body, len))) = frame(rest, 4_096) {
            let update = Update::read(body, &context).expect("a sound message");
            rib.receive(PeerId(0), &update);
            rest = &rest[len..];
        }
        let mut is_done = false;
        while !is_done {
            is_done = !rib.work(10_000, Now::ZERO);
            while let Some(peer) = rib.poll_ready() {
                loop {
                    output.clear();
                    let has_more = rib.fill(peer, &mut output, TURN, Now::ZERO);
                    messages += count(&output);
                    if !has_more {
                        break;
                    }
                }
            }
        }
        taken += start.elapsed();
    }
    (taken, messages)
}

fn count(mut octets: &[u8]) -> u64 {
    let mut messages = 0;
    while octets.len() >= HEADER_LEN {
        octets = &octets[usize::from(u16::from_be_bytes([octets[16], octets[17]]))..];
        messages += 1;
    }
    messages
}

/// The messages of a peer that announces prefixes in a number of attribute sets, or withdraws them.
struct Feed {
    prefixes: u32,
    sets: u32,
    next: u32,
    is_withdrawal: bool,
}

impl Feed {
    fn new(prefixes: u32, sets: u32, is_withdrawal: bool) -> Self {
        Feed {
            prefixes,
            sets,
            next: 0,
            is_withdrawal,
        }
    }

    /// The messages of a turn; `false` if there are no more.
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let writer = UpdateWriter::default();
        let mut attributes = Vec::new();
        while out.len() < TURN && self.next < self.sets {
            let set = self.next;
            self.next += 1;
            let share = |set: u32| {
                (u64::from(set) * u64::from(self.prefixes) / u64::from(self.sets)) as u32
            };
            // The prefixes of a set are not neighbours.
            let routes = (share(set)..share(set + 1)).map(|n| Nlri {
                prefix: Prefix::v4((n.wrapping_mul(0x9e37_79b1) >> 8) << 8, 24),
                path_id: 0,
            });
            if self.is_withdrawal {
                writer.withdraw(wire::bgp::FamilyId::Ipv4Unicast, routes, out);
                continue;
            }
            attributes.clear();
            say(set, &mut attributes);
            let next_hop = NextHop::V4(Ipv4Addr::new(192, 0, 2, 1));
            writer
                .announce(&attributes, next_hop, routes, out)
                .expect("fits");
        }
        !out.is_empty()
    }
}

/// Typical attributes of Internet routes: a path of four, and communities on half of them.
fn say(set: u32, out: &mut Vec<u8>) {
    attr::put(code::ORIGIN, &[0], out);
    attr::put_with(code::AS_PATH, out, |out| {
        out.extend_from_slice(&[SegmentKind::Sequence as u8, 4]);
        for asn in [
            65_001,
            3_000 + set % 13,
            100_000 + set % 1_009,
            200_000 + set,
        ] {
            out.extend_from_slice(&asn.to_be_bytes());
        }
    });
    if set.is_multiple_of(2) {
        attr::put_with(code::COMMUNITIES, out, |out| {
            for community in [(65_001 << 16) + set % 99, (3_000 << 16) + set % 7] {
                out.extend_from_slice(&community.to_be_bytes());
            }
        });
    }
}

/// Resident memory of this process.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1_000.0
}
