//! A network and a client that negotiate a PPP link in memory: LCP, CHAP, IPCP and IPv6CP. No socket and no clock is
//! used.
//!
//! `cargo run -p headend-ppp --example pair`
#![forbid(unsafe_code)]

use std::net::Ipv4Addr;

use base::{Instant, Redacted};
use ppp::{
    Authentication, Claim, Config, Context, Credentials, Event, Grant, Ipv4Offer, Ipv6Offer, Link,
    Outbox, Proof, Random, Side, State,
};
use wire::ppp::chap;

const NAMES: [&str; 2] = ["network", "client"];
const SECRET: &[u8] = b"the cat sat";

/// Counts; a real owner draws from the system's randomness.
struct Counter(u8);

impl Random for Counter {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            self.0 = self.0.wrapping_add(1);
            *octet = self.0;
        }
    }
}

struct End {
    link: Link,
    config: Config,
    random: Counter,
    out: Outbox,
}

impl End {
    fn new(side: Side, config: Config, seed: u8) -> Self {
        let mut random = Counter(seed);
        let link = Link::new(side, &config, &mut random);
        let out = Outbox::new();
        Self {
            link,
            config,
            random,
            out,
        }
    }

    /// Calls the link, and takes its frames and events.
    fn call(
        &mut self,
        call: impl FnOnce(&mut Link, &mut Context<'_>),
    ) -> (Vec<Vec<u8>>, Vec<Event>) {
        let mut ctx = Context {
            now: Instant::ZERO,
            config: &self.config,
            random: &mut self.random,
            out: &mut self.out,
        };
        call(&mut self.link, &mut ctx);
        let frames = self.out.frames().map(<[u8]>::to_vec).collect();
        let events = self.out.events().to_vec();
        self.out.clear();
        (frames, events)
    }
}

/// The network's owner: whether the client knows the secret.
fn is_right(claim: &Claim) -> bool {
    match &claim.proof {
        Proof::None => false,
        Proof::Pap { password, .. } => password.reveal().as_ref() == SECRET,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == chap::md5_response(*identifier, SECRET, challenge),
        Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
    }
}

fn main() {
    let network = Config {
        authenticate: vec![Authentication::ChapMd5],
        ..Config::default()
    };
    let client = Side::Client {
        credentials: Some(Credentials {
            name: b"ann"[..].into(),
            secret: Redacted::new(SECRET.into()),
        }),
        ipv4: Some(Ipv4Offer::ASK),
        ipv6: Some(Ipv6Offer::free(2)),
    };
    let grant = Grant {
        ipv4: Some(Ipv4Offer {
            local: Ipv4Addr::new(192, 0, 2, 1),
            peer: Ipv4Addr::new(198, 51, 100, 7),
            dns: [None; 2],
            ask_dns: false,
        }),
        ipv6: Some(Ipv6Offer::free(1)),
    };
    let mut ends = [
        End::new(Side::Network, network, 0),
        End::new(client, Config::default(), 100),
    ];
    // Each entry: the end, and what its link has produced.
    let mut pending: Vec<_> = (0..2)
        .map(|end| (end, ends[end].call(|link, ctx| link.up(ctx))))
        .collect();
    while !pending.is_empty() {
        let (from, (frames, events)) = pending.remove(0);
        for event in events {
            println!("{}: {event:?}", NAMES[from]);
            if let Event::Authenticate(claim) = event {
                let right = is_right(&claim);
                let answer = ends[from].call(|link, ctx| {
                    if right {
                        link.accept(&grant, b"", ctx);
                    } else {
                        link.refuse(b"wrong", ctx);
                    }
                });
                pending.push((from, answer));
            }
        }
        for frame in frames {
            let reply = ends[1 - from].call(|link, ctx| {
                if let Err(why) = link.handle(&frame, ctx) {
                    println!("{}: ignored: {why:?}", NAMES[1 - from]);
                }
            });
            pending.push((1 - from, reply));
        }
    }
    for end in &ends {
        assert_eq!(end.link.states(), [State::Opened; 3]);
    }
}
