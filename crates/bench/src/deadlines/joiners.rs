//! BGP peers that connect at the same time and read the whole table. Start reading at [`Joiners::read`].

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use base::{Duration, Instant};
use reactor::tcp::TcpOptions;
use reactor::{PollerKind, Reactor, StoreKind, clock};

use crate::bgp::octets::{KEEPALIVE, prefixes, routes};
use crate::bgp::session::{Session, Stage};

/// The first joiner's address, behind the feeder's.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 2, 1, 0);

/// The joiners' AS number.
const ASN: u32 = 65_003;

/// What became of the joiners.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    /// Joiners that have the whole table.
    pub(super) whole: u32,
    /// Sessions that ended.
    pub(super) lost: u32,
    /// Time until the last of them had it.
    pub(super) seconds: f64,
    /// The longest time that a joiner spent without a message.
    pub(super) gap: Duration,
}

/// The joiners. Their sessions end when this is dropped.
pub(super) struct Joiners {
    reactor: Reactor,
    sessions: Vec<Session>,
    /// For each, the prefixes received and the time of the last message.
    got: Vec<(u32, Instant)>,
    said: Instant,
    joined: Joined,
    buffer: Vec<u8>,
}

impl Joiners {
    /// Starts to connect.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn open(server: SocketAddr, count: u32) -> Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        let mut sessions = Vec::with_capacity(count as usize);
        for n in 0..count {
            let from = Ipv4Addr::from(u32::from(FIRST) + n);
            let options = TcpOptions::default();
            let session = Session::begin(&mut reactor, from, server, options, n.into())?;
            sessions.push(session);
        }
        let now = clock::now();
        Ok(Self {
            reactor,
            got: vec![(0, now); sessions.len()],
            sessions,
            said: now,
            joined: Joined::default(),
            buffer: vec![0; 1 << 18],
        })
    }

    /// Reads until each has `prefixes` prefixes or has lost its session, or until `cap` has passed.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn read(&mut self, wanted: u32, cap: Duration) -> Result<Joined> {
        let start = clock::now();
        loop {
            let now = self
                .reactor
                .wait(Some(clock::now() + Duration::from_millis(50)))?;
            while let Some(ready) = self.reactor.next_ready() {
                self.ready(ready.user as usize, wanted, now)?;
            }
            if now.since(self.said) >= Duration::from_secs(1) {
                self.said = now;
                for session in &mut self.sessions {
                    if session.stage == Stage::Established {
                        session.say(&mut self.reactor, &KEEPALIVE);
                    }
                }
            }
            let lost = self.sessions.iter().filter(|s| s.stage == Stage::Closed);
            self.joined.lost = lost.count() as u32;
            let all = self.sessions.len() as u32;
            if self.joined.whole + self.joined.lost >= all || now.since(start) > cap {
                self.joined.seconds = now.since(start).as_secs_f64();
                return Ok(self.joined);
            }
        }
    }

    fn ready(&mut self, place: usize, wanted: u32, now: Instant) -> Result<()> {
        let Some(session) = self.sessions.get_mut(place) else {
            return Ok(());
        };
        if session.stage == Stage::Connecting {
            session.connected(&mut self.reactor, ASN, 3)?;
            return Ok(());
        }
        let was_up = session.stage == Stage::Established;
        let (got, heard) = &mut self.got[place];
        let before = *got;
        let came = session.read(&mut self.reactor, &mut self.buffer, |body| {
            if let Some((_, announced)) = routes(body) {
                *got += prefixes(announced).count() as u32;
            }
        });
        if came.keepalives + came.updates > 0 {
            if was_up {
                self.joined.gap = self.joined.gap.max(now.since(*heard));
            }
            *heard = now;
        }
        if before < wanted && *got >= wanted {
            self.joined.whole += 1;
        }
        Ok(())
    }
}
