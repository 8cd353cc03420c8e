//! Rows for `show`, by cursor, so that no list is built.

use core::net::IpAddr;

use base::timer::TimerStore;
use wire::l2tp::Version;

use super::Endpoint;
use crate::config::Config;
use crate::discard::CounterName;
use crate::session::{EndedSession, SessionKey, SessionView};
use crate::tunnel::{EndedTunnel, Ending, TunnelKey, TunnelView};

/// The number of tunnels, sessions and other records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tunnels that are neither closing nor held.
    pub tunnels: u32,
    /// Tunnels that are established.
    pub established: u32,
    /// Tunnels opened by a peer and not yet established, including refused ones whose StopCCN is
    /// unacknowledged.
    pub half_open: u32,
    /// Tunnels whose StopCCN is unacknowledged.
    pub closing: u32,
    /// Closed tunnels that are kept for late duplicates.
    pub held: u32,
    /// Sessions.
    pub sessions: u32,
    /// Sessions that are established.
    pub sessions_established: u32,
    /// Peers that have tunnels.
    pub peers: u32,
    /// Timers armed.
    pub timers: u32,
    /// Queued control messages: unacknowledged, waiting for a window, or received
    /// ahead of a missing one.
    pub messages: u32,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Tunnels that got a record.
    pub tunnels_opened: u64,
    /// Tunnels that were established.
    pub tunnels_established: u64,
    /// Sessions that were established.
    pub sessions_established: u64,
    /// Control messages received, with acknowledgements.
    pub control_received: u64,
    /// Control messages sent, with acknowledgements.
    pub control_sent: u64,
}

/// A peer as `show` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Its address.
    pub addr: IpAddr,
    /// Its tunnels that are neither closing nor held.
    pub tunnels: u32,
    /// Those of them for which our SCCRQ is unanswered.
    pub opening: u32,
    /// Tunnels opened with it since it last had none.
    pub opened_total: u64,
}

impl Endpoint {
    /// The configuration it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many tunnels use one of the owner's sockets, with those that are closing or held.
    pub fn tunnels_on(&self, socket: u32) -> usize {
        let tunnels = self.tunnels.iter();
        tunnels
            .filter(|(_, tunnel)| tunnel.route.socket == socket)
            .count()
    }

    /// The live tunnel with this id of ours; the first one if several share a 16-bit id.
    pub fn find_tunnel(&self, local_id: u32, version: Option<Version>) -> Option<TunnelKey> {
        let live = |index: u32| {
            let t = self.tunnels.at(index)?;
            let same = t.local_id == local_id && t.ending != Ending::Held;
            (same && version.is_none_or(|v| v == t.version)).then_some(TunnelKey(t.key))
        };
        live(crate::ids::wide_index(local_id)).or_else(|| {
            let id = u16::try_from(local_id).ok()?;
            self.narrow_ids
                .iter()
                .filter_map(|ids| ids.get(id))
                .find_map(live)
        })
    }

    /// The session of a tunnel with this id of ours.
    pub fn find_session(&self, tunnel: TunnelKey, local_id: u32) -> Option<SessionKey> {
        let index = match self.tunnels.get(tunnel.0)?.version {
            Version::V2 => self.narrow_session(tunnel.0.index, local_id),
            Version::V3 => self.wide_session(local_id),
        }?;
        let session = self.session_at(index);
        (session.tunnel == tunnel.0.index).then_some(SessionKey(session.key))
    }

    /// One tunnel, held ones included.
    pub fn tunnel(&self, key: TunnelKey) -> Option<TunnelView<'_>> {
        Some(self.tunnels.get(key.0)?.view())
    }

    /// One session.
    pub fn session(&self, key: SessionKey) -> Option<SessionView<'_>> {
        let session = self.sessions.get(key.0)?;
        Some(session.view(
            self.tunnel_key(session.tunnel),
            self.tunnel_at(session.tunnel).local_id,
        ))
    }

    /// The next tunnel at or after `cursor`, and the cursor to continue with. Held records are skipped.
    pub fn next_tunnel(&self, cursor: u32) -> Option<(u32, TunnelView<'_>)> {
        let mut at = cursor;
        while let Some((index, tunnel)) = self.tunnels.next_from(at) {
            at = index + 1;
            if tunnel.ending != Ending::Held {
                return Some((at, tunnel.view()));
            }
        }
        None
    }

    /// The next session at or after `cursor`, and the cursor to continue with.
    pub fn next_session(&self, cursor: u32) -> Option<(u32, SessionView<'_>)> {
        let (index, session) = self.sessions.next_from(cursor)?;
        let tunnel = self.tunnel_at(session.tunnel);
        Some((
            index + 1,
            session.view(TunnelKey(tunnel.key), tunnel.local_id),
        ))
    }

    /// The next peer at or after `cursor`, and the cursor to continue with.
    pub fn next_peer(&self, cursor: u32) -> Option<(u32, PeerView)> {
        let (index, peer) = self.peers.next_from(cursor)?;
        let view = PeerView {
            addr: peer.addr,
            tunnels: peer.tunnels,
            opening: peer.opening,
            opened_total: peer.opened_total,
        };
        Some((index + 1, view))
    }

    /// The tunnel that ended `n` ago; 0 is the last. At most `limits.history`.
    pub fn ended_tunnel(&self, n: usize) -> Option<&EndedTunnel> {
        self.ended_tunnels.get(n)
    }

    /// The session that ended `n` ago; 0 is the last. At most `limits.history`.
    pub fn ended_session(&self, n: usize) -> Option<&EndedSession> {
        self.ended_sessions.get(n)
    }

    /// The number of tunnels, sessions and other records, in O(1).
    pub fn counts(&self) -> Counts {
        Counts {
            tunnels: self.tally.live,
            established: self.tally.established,
            half_open: self.tally.half_open,
            closing: self.tally.closing,
            held: self.tally.held,
            sessions: self.sessions.len() as u32,
            sessions_established: self.tally.sessions_established,
            peers: self.peers.len() as u32,
            timers: self.timers.len() as u32,
            messages: self.pool.in_use() as u32,
        }
    }

    /// Totals since the start, in O(1).
    #[must_use]
    pub fn totals(&self) -> Totals {
        let counters = &self.counters;
        Totals {
            tunnels_opened: counters.tunnels_opened,
            tunnels_established: counters.tunnels_established,
            sessions_established: counters.sessions_established,
            control_received: counters.received.iter().sum::<u64>() + counters.zlb_received,
            control_sent: counters.sent.iter().sum::<u64>() + counters.zlb_sent,
        }
    }

    /// Control messages retransmitted in all tunnels, those that are gone included.
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        self.counters.retransmissions
    }

    /// Every counter with its name.
    pub fn counters(&self) -> impl Iterator<Item = (CounterName, u64)> + '_ {
        self.counters.rows()
    }

    /// The count of one reason to discard.
    pub fn discarded(&self, why: crate::Discard) -> u64 {
        self.counters.discards[why as usize]
    }
}
