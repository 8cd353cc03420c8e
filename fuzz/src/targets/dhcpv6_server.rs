//! Messages to a DHCPv6 server with one prefix and one address: the codec and the rules of RFC 8415.

use core::net::IpAddr;

use aaa::Prefix;
use base::{Duration, Instant};
use edge::v6::{Leases, Server, Settings, Stock, Wanted};
use wire::dhcpv6::{Association, Kind, Message, code};

/// The link's stock.
#[derive(Default)]
struct Shelf {
    held: [Option<Prefix>; 2],
    offers: usize,
}

fn own(wanted: Wanted) -> Option<Prefix> {
    match wanted {
        Wanted::Address => Prefix::new("2001:db8::9".parse().ok()?, 128),
        Wanted::Prefix => Prefix::new("2001:db8:100::".parse().ok()?, 56),
    }
}

impl Stock for Shelf {
    fn look(&mut self, wanted: Wanted, _: Option<Prefix>) -> Option<Prefix> {
        self.offers += 1;
        own(wanted)
    }

    fn take(&mut self, wanted: Wanted, _: Option<Prefix>) -> Option<Prefix> {
        self.held[wanted as usize] = own(wanted);
        own(wanted)
    }

    fn held(&self, wanted: Wanted) -> Option<Prefix> {
        self.held[wanted as usize]
    }

    fn give_back(&mut self, wanted: Wanted) {
        assert!(
            self.held[wanted as usize].take().is_some(),
            "given back twice"
        );
    }

    fn is_on_link(&self, address: IpAddr) -> bool {
        self.held.iter().flatten().any(|one| one.contains(address))
    }

    fn is_leasable(&self, address: IpAddr) -> bool {
        own(Wanted::Address) == Prefix::new(address, 128)
    }
}

/// Takes messages, each an octet of length and that many octets. A server identifier of `S` alone becomes ours.
///
/// # Panics
/// If a lease is held without a binding or the other way round, or a reply is malformed or too long.
pub fn target(data: &[u8]) {
    let settings = Settings {
        dns: vec!["2001:db8::53".parse().expect("an address")],
        duid: Box::new(*b"Srv"),
        ..Settings::default()
    };
    let server = Server {
        settings: &settings,
        dns: &settings.dns,
    };
    let (mut leases, mut shelf) = (Leases::default(), Shelf::default());
    let mut now = Instant::ZERO;
    let mut rest = data;
    while let [length, more @ ..] = rest {
        let (content, behind) = more.split_at(usize::from(*length).min(more.len()));
        rest = behind;
        now += Duration::from_secs(u64::from(*length));
        let mut out = Vec::new();
        let hash = |duid: &[u8]| duid.iter().map(|one| u64::from(*one)).sum();
        let link = (&mut leases, &mut shelf);
        let is_multicast = content.last().is_none_or(|last| *last != 0xee);
        let answer = server.answer(content, is_multicast, link, hash, now, &mut out);
        assert_eq!(answer.is_err(), out.is_empty());
        assert!(out.len() < 1_200, "it fits into the smallest MTU");
        if answer.is_ok() {
            check(content, &out);
        }
        for wanted in [Wanted::Address, Wanted::Prefix] {
            assert_eq!(leases.has(wanted), shelf.held(wanted).is_some());
        }
    }
}

/// A reply is well-formed and for its question.
fn check(asked: &[u8], reply: &[u8]) {
    let asked = Message::read(asked).expect("it was answered");
    let reply = Message::read(reply).expect("our own");
    assert_eq!(asked.transaction, reply.transaction);
    assert!(matches!(reply.kind, Kind::Advertise | Kind::Reply));
    assert!(reply.options.has(code::SERVER_ID));
    for one in reply.options {
        if matches!(one.code, code::IA_NA | code::IA_PD) {
            let association = Association::read(one.value).expect("our own");
            let valid = association.leases().filter(|lease| lease.valid_s > 0);
            assert!(valid.count() <= 1);
        }
    }
}
