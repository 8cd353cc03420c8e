//! Measures what a subscriber costs an LNS without I/O: processor time from the SCCRQ until packets can flow,
//! and memory while it is connected, including its tunnel.
//!
//! The clients run once, in a separate process, and their datagrams are recorded. The recording is then
//! replayed to a new LNS with the same seed, which therefore gives the same answers. Only the replay is
//! measured.
//!
//! `cargo run --release -p headend-edge --example subscribers -- [NUMBER]`
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Instant as Clock;

use aaa::pools::{Pools, Range, Spec};
use base::{Instant, Redacted, Route};
use edge::{Admission, Config, Dial, Edge, Inside, Question};
use l2tp::{Call, Endpoint, OpenTunnel};
use ppp::{Authentication, Credentials, Proof};
use wire::l2tp::Version;

const LNS: &str = "192.0.2.1:1701";
const SECRET: &[u8] = b"open sesame";

/// Discards packets.
struct Nowhere;

impl Inside for Nowhere {
    fn packet(&mut self, _: &[u8]) {}
}

/// What the subscriber does.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    proof: Authentication,
    ipv6: bool,
}

/// The clients' datagrams, each preceded by its length and its client's number.
#[derive(Default)]
struct Script {
    octets: Vec<u8>,
}

impl Script {
    fn push(&mut self, client: u32, datagram: &[u8]) {
        self.octets.extend_from_slice(&client.to_be_bytes());
        let length = datagram.len() as u16;
        self.octets.extend_from_slice(&length.to_be_bytes());
        self.octets.extend_from_slice(datagram);
    }

    fn lines(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut rest = &self.octets[..];
        core::iter::from_fn(move || {
            let (client, after) = rest.split_first_chunk()?;
            let (length, after) = after.split_first_chunk()?;
            let (datagram, after) = after.split_at(usize::from(u16::from_be_bytes(*length)));
            rest = after;
            Some((u32::from_be_bytes(*client), datagram))
        })
    }
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "CHAP, IPv4",
        proof: Authentication::ChapMd5,
        ipv6: false,
    },
    Kind {
        name: "PAP, IPv4",
        proof: Authentication::Pap,
        ipv6: false,
    },
    Kind {
        name: "CHAP, IPv4 and IPv6",
        proof: Authentication::ChapMd5,
        ipv6: true,
    },
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let number = arguments.next();
    let number = number.map_or(100_000, |text| text.parse().expect("a number"));
    let place = arguments.next().map(|text| text.parse::<usize>());
    let step = arguments.next();
    match (place, step) {
        (Some(Ok(place)), Some(_)) => io::stdout().write_all(&write(KINDS[place], number).octets),
        (Some(Ok(place)), None) => {
            let octets = again(&[&number.to_string(), &place.to_string(), "write"])?;
            measure(KINDS[place], number, &Script { octets });
            Ok(())
        }
        _ => {
            println!("{number} subscribers, each with a tunnel of its own");
            for place in 0..KINDS.len() {
                let line = again(&[&number.to_string(), &place.to_string()])?;
                io::stdout().write_all(&line)?;
            }
            Ok(())
        }
    }
}

/// The output of this program when run with these arguments.
fn again(arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(arguments).stderr(Stdio::inherit()).output()?;
    assert!(output.status.success(), "{arguments:?}");
    Ok(output.stdout)
}

/// Runs the clients, one after the other.
fn write(kind: Kind, number: u32) -> Script {
    let (mut lns, mut script) = (lns(kind, number), Script::default());
    let mut bytes = Vec::new();
    for n in 0..number {
        let mut client = client(n, kind);
        loop {
            let mut any = false;
            while client.poll_transmit(Instant::ZERO, &mut bytes).is_some() {
                script.push(n, &bytes);
                hear(&mut lns, n, &bytes);
                bytes.clear();
                any = true;
            }
            while lns.poll_transmit(Instant::ZERO, &mut bytes).is_some() {
                client.receive(route(addr(LNS)), &bytes, Instant::ZERO, &mut Nowhere);
                bytes.clear();
                any = true;
            }
            if !any {
                break;
            }
        }
    }
    assert_eq!(lns.counts().up, u64::from(number), "all came up");
    script
}

fn measure(kind: Kind, number: u32, script: &Script) {
    let datagrams = script.lines().count();
    let mut lns = lns(kind, number);
    let mut bytes = Vec::new();
    let (memory, begun) = (resident(), Clock::now());
    for (n, datagram) in script.lines() {
        hear(&mut lns, n, datagram);
        while lns.poll_transmit(Instant::ZERO, &mut bytes).is_some() {
            bytes.clear();
        }
    }
    let per = |total: f64| total / f64::from(number);
    let time = begun.elapsed();
    let gained = resident().saturating_sub(memory);
    assert_eq!(lns.counts().up, u64::from(number), "all came up");
    println!(
        "{:20} {:6.2} us, {:.1} datagrams taken, {:5.0} octets resident",
        kind.name,
        per(time.as_secs_f64() * 1e6),
        per(datagrams as f64),
        per(gained as f64),
    );
}

/// Passes a datagram to the LNS, and does what its owner does.
fn hear(lns: &mut Edge, client: u32, datagram: &[u8]) {
    let now = Instant::ZERO;
    let mut route = route(address(client));
    // One address has only 16 bits for L2TPv2 tunnel ids.
    route.local = Some(Ipv4Addr::from_bits(0xc000_0201 + client / 60_000).into());
    lns.receive(route, datagram, now, &mut Nowhere);
    while let Some(question) = lns.poll_question() {
        if is_right(&question) {
            lns.admit(question.subscriber, Admission::default(), b"", now);
        } else {
            lns.refuse(
                question.subscriber,
                (edge::Refusal::Rejected, "a wrong secret"),
                b"",
                now,
            );
        }
    }
    while lns.poll_event().is_some() {}
    while lns.poll_account().is_some() {}
}

fn is_right(question: &Question) -> bool {
    match &question.claim.proof {
        Proof::None => false,
        Proof::Pap { password, .. } => **password.reveal() == *SECRET,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == wire::ppp::chap::md5_response(*identifier, SECRET, challenge),
        Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
    }
}

fn lns(kind: Kind, number: u32) -> Edge {
    let config = Config {
        terminate: true,
        accounting: true,
        address: Ipv4Addr::new(10, 255, 255, 254),
        ipv6: kind.ipv6,
        subscribers_max: number,
        ppp: ppp::Config {
            authenticate: vec![kind.proof],
            ..ppp::Config::default()
        },
        ..Config::default()
    };
    let mut l2tp = l2tp::Config {
        host_name: "lns".into(),
        accept: true,
        ..l2tp::Config::default()
    };
    l2tp.limits.tunnels = number;
    l2tp.limits.sessions = number;
    let range = Range::new([10, 0, 0, 0].into(), [10, 7, 255, 255].into()).expect("a range");
    let spec = Spec {
        name: "home".into(),
        ranges: vec![range],
        ..Spec::default()
    };
    let pools = Pools::new(vec![spec], vec![config.address], 7).expect("pools");
    Edge::new(config, Endpoint::new(l2tp, [1; 32]), pools, [2; 32])
}

/// A client that dials.
fn client(n: u32, kind: Kind) -> Edge {
    let seed = core::array::from_fn(|place| n.to_le_bytes()[place % 4]);
    let config = l2tp::Config {
        host_name: "lac".into(),
        ..l2tp::Config::default()
    };
    let pools = Pools::new(Vec::new(), Vec::new(), 0).expect("no pools");
    let endpoint = Endpoint::new(config, seed);
    let mut edge = Edge::new(Config::default(), endpoint, pools, seed);
    let open = OpenTunnel {
        route: route(addr(LNS)),
        version: Version::V2,
    };
    let opened = edge.endpoint_mut().open_tunnel(open, Instant::ZERO);
    let tunnel = opened.expect("the first tunnel");
    let call = edge
        .endpoint_mut()
        .open_session(tunnel, Call::default(), Instant::ZERO);
    let credentials = Credentials {
        name: format!("user{n}@home.example").into_bytes().into(),
        secret: Redacted::new(SECRET.into()),
    };
    let dial = Dial {
        credentials: Some(credentials),
        ipv4: true,
        ipv6: kind.ipv6,
        networks: Vec::new(),
    };
    edge.dial(call.expect("the first session"), dial, Instant::ZERO);
    edge
}

fn address(client: u32) -> SocketAddr {
    (Ipv4Addr::from_bits(0xac10_0000 + client), 1701).into()
}

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address with a port")
}

fn route(peer: SocketAddr) -> Route {
    Route {
        peer,
        local: None,
        socket: 0,
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|text| text.parse().ok());
    pages.unwrap_or(0_u64) * 4_096
}
