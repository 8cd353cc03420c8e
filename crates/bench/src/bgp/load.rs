//! Passive peers: many sessions from addresses of their own. Each sends a KEEPALIVE per second, at
//! evenly spread times.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use reactor::tcp::TcpOptions;
use reactor::{PollerKind, Reactor, StoreKind, clock};

use super::octets::KEEPALIVE;
use super::session::{Session, Stage};

/// The first source address of the sessions.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

/// The AS number of all peers.
pub(crate) const ASN: u32 = 65_001;

/// Time between two KEEPALIVEs of a session.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limit of sessions being opened at a time, unless all are opened at once.
const WINDOW: u32 = 128;

/// Least time over which sessions are opened, so that the subject's KEEPALIVE timers are spread
/// too.
const SPREAD: Duration = Duration::from_secs(2);

/// How sessions are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All connect before any input is read.
    AtOnce,
    /// One by one over two seconds or longer, few at a time.
    Spread,
}

/// Counters of the sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) keepalives: u64,
    pub(crate) updates: u64,
    pub(crate) octets: u64,
    /// Sessions that were established and no longer are.
    pub(crate) lost: u32,
    /// Sessions that never got established.
    pub(crate) failed: u32,
    /// NOTIFICATIONs by code and subcode.
    pub(crate) notifications: BTreeMap<(u8, u8), u32>,
    /// Largest delay of one of our KEEPALIVEs.
    pub(crate) late_max: Duration,
}

/// The sessions.
pub(crate) struct Load {
    server: SocketAddr,
    hold_s: u16,
    reactor: Reactor,
    sessions: Vec<Session>,
    wanted: u32,
    up: u32,
    pub(crate) seen: Seen,
    /// Time of the first KEEPALIVE, and the number sent since.
    beat: (Instant, u64),
    buffer: Vec<u8>,
    /// When each session last received a message.
    heard: Vec<Instant>,
    /// The longest time between two messages of a session, since [`Load::take_gap`] was called.
    gap: Duration,
}

impl Load {
    /// No session is opened yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(server: SocketAddr, wanted: u32, hold_s: u16) -> io::Result<Self> {
        Ok(Self {
            server,
            hold_s,
            reactor: Reactor::new(PollerKind::Epoll, StoreKind::Slab)?,
            sessions: Vec::with_capacity(wanted as usize),
            wanted: wanted.max(1),
            up: 0,
            seen: Seen::default(),
            beat: (clock::now(), 0),
            buffer: vec![0; 1 << 16],
            heard: Vec::with_capacity(wanted as usize),
            gap: Duration::ZERO,
        })
    }

    /// Number of established sessions.
    pub(crate) fn up(&self) -> u32 {
        self.up
    }

    /// Opens all sessions, or as many as are up when `cap` has passed. Returns the time from the
    /// first connect to the last session established.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open(&mut self, pace: Pace, cap: Duration) -> io::Result<Duration> {
        let start = clock::now();
        self.beat = (start, 0);
        let (mut now, mut last) = (start, start);
        while now.since(start) < cap {
            let begun = self.sessions.len() as u32;
            let settled = self.up + self.seen.lost + self.seen.failed;
            if settled >= self.wanted {
                break;
            }
            let target = match pace {
                Pace::AtOnce => self.wanted,
                Pace::Spread => {
                    let part = now.since(start).as_secs_f64() / SPREAD.as_secs_f64();
                    let due = (f64::from(self.wanted) * part) as u32 + 1;
                    due.min(self.wanted).min(settled + WINDOW)
                }
            };
            for n in begun..target {
                self.begin(n)?;
            }
            let before = self.up;
            now = self.turn(now + Duration::from_millis(1))?;
            if self.up > before {
                last = now;
            }
        }
        Ok(last.since(start))
    }

    /// Keeps the sessions for `span`.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn keep(&mut self, span: Duration) -> io::Result<()> {
        let end = clock::now() + span;
        while self.turn(end)? < end {}
        Ok(())
    }

    /// The longest time that a session spent without a message since the last call; times that go on count.
    pub(crate) fn take_gap(&mut self) -> Duration {
        let now = clock::now();
        let sessions = self.sessions.iter().zip(&self.heard);
        let open = sessions.filter(|(session, _)| session.stage == Stage::Established);
        let longest = open.map(|(_, &heard)| now.since(heard)).max();
        std::mem::take(&mut self.gap).max(longest.unwrap_or_default())
    }

    fn begin(&mut self, n: u32) -> io::Result<()> {
        let from = Ipv4Addr::from(u32::from(FIRST) + n);
        let options = TcpOptions::default();
        let session = Session::begin(&mut self.reactor, from, self.server, options, n.into())?;
        self.sessions.push(session);
        self.heard.push(clock::now());
        Ok(())
    }

    /// Sends what is due, waits until more is due or input arrives, and reads it.
    fn turn(&mut self, until: Instant) -> io::Result<Instant> {
        let due = self.say_due(clock::now());
        let now = self.reactor.wait(Some(due.min(until)))?;
        while let Some(ready) = self.reactor.next_ready() {
            let Some(session) = self.sessions.get_mut(ready.user as usize) else {
                continue;
            };
            let before = session.stage;
            if before == Stage::Connecting {
                session.connected(&mut self.reactor, ASN, self.hold_s)?;
            } else {
                let came = session.read(&mut self.reactor, &mut self.buffer, |_| {});
                let place = ready.user as usize;
                if came.keepalives + came.updates > 0 {
                    let heard = std::mem::replace(&mut self.heard[place], now);
                    if before == Stage::Established {
                        self.gap = self.gap.max(now.since(heard));
                    }
                }
                self.seen.octets += came.octets;
                self.seen.keepalives += u64::from(came.keepalives);
                self.seen.updates += u64::from(came.updates);
                if let Some(code) = came.notification {
                    *self.seen.notifications.entry(code).or_default() += 1;
                }
            }
            let after = session.stage;
            if before != Stage::Established && after == Stage::Established {
                self.heard[ready.user as usize] = now;
            }
            self.count(before, after);
        }
        Ok(now)
    }

    fn count(&mut self, before: Stage, after: Stage) {
        match (before == Stage::Established, after) {
            (false, Stage::Established) => self.up += 1,
            (true, Stage::Closed) => {
                self.up -= 1;
                self.seen.lost += 1;
            }
            (false, Stage::Closed) if before != Stage::Closed => self.seen.failed += 1,
            _ => {}
        }
    }

    /// Sends the KEEPALIVEs that are due. Returns when the next one is.
    fn say_due(&mut self, now: Instant) -> Instant {
        let wanted = u64::from(self.wanted);
        let due = |turn: u64| {
            let whole = INTERVAL.as_nanos().saturating_mul(turn) / wanted;
            self.beat.0 + Duration::from_nanos(whole)
        };
        let mut turn = self.beat.1;
        let mut said = Vec::new();
        while due(turn) <= now {
            said.push(((turn % wanted) as usize, now.since(due(turn))));
            turn += 1;
        }
        let next = due(turn);
        self.beat.1 = turn;
        for (place, late) in said {
            let Some(session) = self.sessions.get_mut(place) else {
                continue;
            };
            let before = session.stage;
            if before == Stage::Established {
                self.seen.late_max = self.seen.late_max.max(late);
                session.say(&mut self.reactor, &KEEPALIVE);
                let after = session.stage;
                self.count(before, after);
            }
        }
        next
    }
}
