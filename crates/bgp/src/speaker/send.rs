//! Fills connections: messages of the session itself, KEEPALIVEs, routes.

use base::{Duration, Instant};
use wire::bgp::{HEADER_LEN, KEEPALIVE, Kind};

use super::Speaker;
use crate::table::{ConnId, Flags};
use crate::timers::Timer;

/// The minimum of the SendHoldTime (RFC 9687: 8 minutes, or twice the hold time if that is longer).
const SEND_HOLD_MIN: Duration = Duration::from_secs(480);

impl Speaker {
    /// The next connection that has something to send. Each is returned once until it has something new; connections
    /// whose stream accepts no data are not returned.
    #[inline]
    pub fn poll_ready(&mut self) -> Option<ConnId> {
        self.take_ready_routes();
        while let Some(id) = self.ready.pop_front() {
            let Some(hot) = self.conns.hot_mut(id) else {
                continue;
            };
            hot.flags.clear(Flags::READY);
            if hot.flags.any(Flags::OUTPUT) && !hot.flags.has(Flags::BLOCKED) {
                return Some(id);
            }
        }
        None
    }

    /// Whether a connection has messages of the session itself to send: OPEN, KEEPALIVE, ROUTE-REFRESH. A driver sends
    /// these before routes to any peer: it calls [`fill`](Self::fill) with a limit of 0.
    #[must_use]
    #[inline]
    pub fn is_urgent(&self, conn: ConnId) -> bool {
        let urgent = Flags::URGENT;
        self.conns
            .hot(conn)
            .is_some_and(|hot| hot.flags.any(urgent))
    }

    /// Appends whole messages to `out` while it has fewer than `limit` octets; the last message may exceed that.
    /// Returns whether there is more: then the connection is ready again.
    #[inline]
    pub fn fill(&mut self, conn: ConnId, out: &mut Vec<u8>, limit: usize, now: Instant) -> bool {
        let Some(hot) = self.conns.hot_mut(conn) else {
            return false;
        };
        if hot.flags.among(Flags::OUTPUT) == Flags::KEEPALIVE {
            hot.flags.clear(Flags::KEEPALIVE);
            hot.keepalives_out = hot.keepalives_out.wrapping_add(1);
            out.extend_from_slice(&KEEPALIVE);
            return false;
        }
        self.fill_all(conn, out, limit, now)
    }

    fn fill_all(&mut self, id: ConnId, out: &mut Vec<u8>, limit: usize, now: Instant) -> bool {
        self.latest = now;
        let start = out.len();
        let Some((conn, hot)) = self.conns.both_mut(id) else {
            return false;
        };
        let flags = hot.flags;
        let index = conn.peer;
        if flags.has(Flags::CONTROL) {
            out.append(&mut conn.output);
            conn.output = Vec::new();
        }
        let mut keepalives = 0;
        if flags.has(Flags::KEEPALIVE) {
            out.extend_from_slice(&KEEPALIVE);
            keepalives = 1;
        }
        let mut more = false;
        let mut updates = 0;
        if flags.has(Flags::ROUTES) {
            let routes = out.len();
            let room = limit.saturating_sub(routes - start);
            more = room == 0 || self.fill_routes(index, out, room, now);
            let refreshes;
            (updates, refreshes) = count_messages(&out[routes..]);
            if let Some(peer) = self.peers.get_mut(index) {
                peer.counts.updates_out += updates;
                self.updates.1 += updates;
                peer.counts.refreshes_out = peer.counts.refreshes_out.wrapping_add(refreshes);
            }
        }
        let Some(hot) = self.conns.hot_mut(id) else {
            return false;
        };
        hot.flags.clear(Flags::OUTPUT);
        hot.keepalives_out = hot.keepalives_out.wrapping_add(keepalives);
        if updates > 0
            && hot.hold_s != 0
            && let Some(ring) = self.rings.get(usize::from(hot.ring))
        {
            hot.sent_tick = later(hot.sent_tick, ring.tick(now));
        }
        if more {
            hot.flags.set(Flags::ROUTES);
            self.make_ready(id);
        }
        more
    }

    /// Sets whether the stream of a connection accepts no data. Meanwhile no messages are written for it, and the
    /// SendHoldTimer runs (RFC 9687).
    pub fn set_blocked(&mut self, conn: ConnId, blocked: bool) {
        let now = self.latest;
        let (Some(found), Some(hot)) = (self.conns.get(conn), self.conns.hot(conn)) else {
            return;
        };
        if hot.flags.has(Flags::BLOCKED) == blocked {
            return;
        }
        let index = found.peer;
        let hold = Duration::from_secs(2 * u64::from(hot.hold_s));
        let span = self
            .peers
            .get(index)
            .and_then(|peer| peer.settings.send_hold)
            .unwrap_or(hold.max(SEND_HOLD_MIN));
        let Some((found, hot)) = self.conns.both_mut(conn) else {
            return;
        };
        if blocked {
            hot.flags.set(Flags::BLOCKED);
            found.send_hold = now + span;
            let at = found.send_hold;
            self.timers.arm(at, Timer::SendHold(conn));
        } else {
            hot.flags.clear(Flags::BLOCKED);
            found.send_hold = Instant::FAR_FUTURE;
            if hot.flags.any(Flags::OUTPUT) {
                self.make_ready(conn);
            }
        }
    }
}

/// How many UPDATE and ROUTE-REFRESH messages of ours there are.
fn count_messages(mut messages: &[u8]) -> (u64, u32) {
    let (mut updates, mut refreshes) = (0, 0);
    while let Some(header) = messages.first_chunk::<HEADER_LEN>() {
        let len = usize::from(u16::from_be_bytes([header[16], header[17]]));
        updates += u64::from(header[18] == Kind::Update as u8);
        refreshes += u32::from(header[18] == Kind::RouteRefresh as u8);
        messages = messages.get(len.max(HEADER_LEN)..).unwrap_or_default();
    }
    (updates, refreshes)
}

/// The later of two ticks of a ring.
const fn later(a: u32, b: u32) -> u32 {
    if b.wrapping_sub(a).cast_signed() > 0 {
        b
    } else {
        a
    }
}
