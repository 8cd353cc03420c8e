//! Subscribers of the measured LNS.
//!
//! A few subscribers record when HELLOs and LCP Echo-Requests arrive ([`Few`]). Waves of thousands of subscribers are
//! the load ([`many`]).

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Result;
use base::{Duration, Instant};

use crate::subscribers::load::{Load, Options};

/// The source addresses of the few, and of the waves.
const FEW: Ipv4Addr = Ipv4Addr::new(127, 3, 0, 0);
const MANY: Ipv4Addr = Ipv4Addr::new(127, 4, 0, 0);

/// Longest time that the few may take to connect.
const UP_MAX: Duration = Duration::from_secs(15);

/// The longest times between two messages of one kind, in any tunnel or session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gaps {
    pub(super) hello: Duration,
    pub(super) echo: Duration,
}

/// A message that the LNS sends at intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Hello,
    Echo,
    /// A tunnel with a session, whose HELLOs do not count.
    Used,
}

/// The kind of a datagram, and its tunnel and session; `None` for all other datagrams.
fn kind(octets: &[u8]) -> Option<(Kind, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]));
    let flags = number(0)?;
    let has = |bit: u16| flags & bit != 0;
    let ids = if has(0x4000) { 4 } else { 2 };
    let tunnel = u32::from(number(ids)?) << 16;
    if has(0x8000) {
        // The Message Type AVP comes first (RFC 2661, section 4.4.1); HELLO is 6.
        return (number(18) == Some(6)).then_some((Kind::Hello, tunnel));
    }
    let session = u32::from(number(ids + 2)?);
    let mut at = ids + 4 + if has(0x0800) { 4 } else { 0 };
    if has(0x0200) {
        at += 2 + usize::from(number(at)?);
    }
    if number(at) == Some(0xff03) {
        at += 2;
    }
    // LCP, and its code 9: Echo-Request (RFC 1661, section 5.8).
    let is_echo = number(at) == Some(0xc021) && octets.get(at + 2) == Some(&9);
    is_echo.then_some((Kind::Echo, tunnel | session))
}

/// The few subscribers, in a thread of their own.
pub(super) struct Few {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    up: AtomicU32,
    /// Nanoseconds.
    hello: AtomicU64,
    echo: AtomicU64,
    heard: Mutex<HashMap<(Kind, u32), Instant>>,
}

impl Shared {
    fn note(&self, octets: &[u8], now: Instant) {
        let Some(found) = kind(octets) else { return };
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, ids) = found;
        if kind == Kind::Echo {
            heard.insert((Kind::Used, ids & !0xffff), now);
            heard.remove(&(Kind::Hello, ids & !0xffff));
        } else if heard.contains_key(&(Kind::Used, ids)) {
            return;
        }
        if let Some(before) = heard.insert(found, now) {
            self.longest(kind, now.since(before));
        }
    }

    fn longest(&self, kind: Kind, gap: Duration) {
        let place = match kind {
            Kind::Hello => &self.hello,
            Kind::Echo => &self.echo,
            Kind::Used => return,
        };
        place.fetch_max(gap.as_nanos(), Ordering::Relaxed);
    }
}

impl Few {
    /// Connects `count` subscribers, and returns when they are connected.
    pub(super) fn open(server: SocketAddr, count: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            reactor::urgency::hasten(false);
            let mut load = Load::new(Options {
                servers: vec![server],
                sources: (FEW, count),
                ipv6: false,
                first_user: 0,
            })?;
            let wave = load.open(count, count, UP_MAX)?;
            // An LNS sends HELLO when it has heard nothing for the interval. Tunnels with sessions hear echoes.
            load.open_tunnels(count)?;
            own.up.store(wave.up, Ordering::Release);
            let notes = Arc::clone(&own);
            load.observer = Some(Box::new(move |octets, now| notes.note(octets, now)));
            while !own.stop.load(Ordering::Acquire) {
                load.answer(Duration::from_millis(50))?;
            }
            Ok(())
        });
        let shown = Self {
            shared,
            thread: Some(thread),
        };
        while shown.shared.up.load(Ordering::Acquire) < count && !shown.is_over() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        shown
    }

    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What was noted since the last call; times that go on count.
    pub(super) fn take(&self) -> Gaps {
        let now = reactor::clock::now();
        let heard = self.shared.heard.lock();
        for (&(kind, _), &at) in heard.unwrap_or_else(PoisonError::into_inner).iter() {
            self.shared.longest(kind, now.since(at));
        }
        let take = |place: &AtomicU64| Duration::from_nanos(place.swap(0, Ordering::Relaxed));
        Gaps {
            hello: take(&self.shared.hello),
            echo: take(&self.shared.echo),
        }
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Clients for waves of subscribers, whose users come after those of the few.
///
/// # Errors
/// The kernel's error.
pub(super) fn many(server: SocketAddr, few: u32, count: u32) -> Result<Load> {
    Ok(Load::new(Options {
        servers: vec![server],
        sources: (MANY, count),
        ipv6: false,
        first_user: few,
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_echo_requests_are_told_from_the_rest() {
        let control = |kind: u8| {
            let mut octets = vec![0xc8, 2, 0, 20, 0, 7, 0, 0, 0, 1, 0, 1];
            octets.extend([0x80, 8, 0, 0, 0, 0, 0, kind]);
            octets
        };
        assert_eq!(kind(&control(6)), Some((Kind::Hello, 7 << 16)));
        assert_eq!(kind(&control(2)), None);
        let data =
            |header: &[u8], code: u8| [header, &[0xff, 3, 0xc0, 0x21, code, 1, 0, 8]].concat();
        let plain = [0, 2, 0, 7, 0, 9];
        let long = [0x40, 2, 0, 20, 0, 7, 0, 9];
        for header in [&plain[..], &long] {
            let found = kind(&data(header, 9));
            assert_eq!(found, Some((Kind::Echo, 7 << 16 | 9)));
            assert_eq!(kind(&data(header, 10)), None);
        }
        assert_eq!(kind(&[0xc8]), None);
    }
}
