//! Tests by requirement of RFC 4787, 5382, 5508, 6888, 7422 and 7857.

mod carrier;
mod early;
mod ftp;
mod icmp;
mod limits;
mod model;
mod ports;
mod settings;
mod tcp;
mod udp;

use std::net::Ipv4Addr;

use base::{Duration, Instant};
use wire::ip::Header;

use super::testing::{Ends, read};
use super::{Nat, Verdict};
use crate::{Config, Discard, Event, SubscriberId, Sum};

pub(super) const ANN: &str = "100.64.0.1";
pub(super) const BOB: &str = "100.64.0.2";
pub(super) const WEB: &str = "198.51.100.7";
pub(super) const DNS: &str = "198.51.100.53";

/// A NAT with subscribers, and a clock.
pub(super) struct World {
    pub(super) nat: Nat,
    pub(super) now: Instant,
    pub(super) ann: SubscriberId,
    pub(super) bob: SubscriberId,
}

pub(super) fn config() -> Config {
    let externals = vec!["192.0.2.0/30".parse().expect("a prefix")];
    let mut config = Config::new(
        externals,
        [0x1234_5678_9abc_def1, 0xfeed_beef_dead_cafe, 99],
    );
    config.limits.mappings_max = 5000;
    config.limits.sessions_max = 5000;
    config
}

pub(super) fn world(config: Config) -> World {
    let mut nat = Nat::new(config).expect("good settings");
    let ann = nat.join(1, address(ANN)).expect("room");
    let bob = nat.join(2, address(BOB)).expect("room");
    World {
        nat,
        now: Instant::from_nanos(1_000_000_000_000),
        ann,
        bob,
    }
}

pub(super) fn address(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

impl World {
    pub(super) fn out(&mut self, id: SubscriberId, packet: &mut [u8]) -> Result<Verdict, Discard> {
        let header = Header::read(packet).expect("an IP packet");
        self.nat
            .outbound(id, &header, packet, Sum::Complete, self.now)
    }

    pub(super) fn back(&mut self, packet: &mut [u8]) -> Result<Verdict, Discard> {
        let header = Header::read(packet).expect("an IP packet");
        self.nat.inbound(&header, packet, Sum::Complete, self.now)
    }

    /// The external source of a packet of Ann's.
    #[track_caller]
    pub(super) fn source(&mut self, mut packet: Vec<u8>) -> (Ipv4Addr, u16) {
        let verdict = self.out(self.ann, &mut packet);
        assert_eq!(verdict, Ok(Verdict::Translated));
        super::testing::assert_sums(&packet, true);
        read(&packet).from
    }

    /// Time passes, and timers fire.
    pub(super) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.nat.handle_timeout(self.now);
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.nat.poll_event()).collect()
    }
}

/// Both ends, by address and port.
pub(super) fn between(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Ends {
    Ends { from, to }
}
