//! Half-open tunnels: how many one source may have, and how many answers an unauthenticated request draws.
//!
//! Any host can send an SCCRQ from a spoofed address, and the owner of that address receives the answers. While many
//! tunnels are half open, each request therefore draws [`ANSWERS_MAX`] datagrams at most. RFC 3931 4.3 permits such
//! limits.

use core::net::IpAddr;
use std::collections::HashMap;

use base::Instant;
use foldhash::fast::FixedState;

use super::Endpoint;
use crate::end::TunnelEnd;
use crate::tunnel::fsm::Event;
use crate::tunnel::{Ending, Tunnel};

/// Datagrams that one request draws during a flood: the SCCRP or StopCCN, and one retransmission.
const ANSWERS_MAX: u32 = 2;

/// How many stale entries the queue of half-open tunnels may contain before it is compacted.
const ORDER_SLACK: usize = 1_024;

/// The number of half-open tunnels of each source.
pub(super) struct Sources {
    counts: HashMap<IpAddr, u32, FixedState>,
}

impl Sources {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            counts: HashMap::with_hasher(hasher),
        }
    }

    pub(super) fn count(&self, addr: IpAddr) -> u32 {
        self.counts.get(&source(addr)).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, addr: IpAddr) {
        *self.counts.entry(source(addr)).or_default() += 1;
    }

    pub(super) fn remove(&mut self, addr: IpAddr) {
        let addr = source(addr);
        let count = self.counts.get_mut(&addr).expect("it was added");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&addr);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The address that counts as the source: an IPv6 host can take any address of its /64.
fn source(addr: IpAddr) -> IpAddr {
    match addr.to_canonical() {
        IpAddr::V4(addr) => addr.into(),
        IpAddr::V6(addr) => {
            let network = addr.to_bits() >> 64 << 64;
            core::net::Ipv6Addr::from_bits(network).into()
        }
    }
}

impl Endpoint {
    /// Whether this source has as many half-open tunnels as it may have.
    pub(super) fn source_is_full(&self, addr: IpAddr) -> bool {
        self.sources.count(addr) >= self.config.limits.half_open_per_source
    }

    /// Whether a half-open tunnel has drawn all the answers that it may draw during a flood.
    pub(super) fn has_drawn_enough(&self, index: u32) -> bool {
        let tunnel = self.tunnel_at(index);
        tunnel.is_half_open()
            && tunnel.sent >= ANSWERS_MAX
            && (self.tally.half_open > self.config.limits.half_open_flood
                || self.source_is_full(tunnel.route.peer.ip()))
    }

    /// A timer of the tunnel is due. If that is a retransmission, and the tunnel has drawn enough answers, the tunnel
    /// waits out the second interval and is then dropped: a genuine peer repeats its request, and starts again.
    pub(super) fn cut_short(&mut self, index: u32, now: Instant) -> bool {
        let due = self.tunnel_at(index).reliable.deadline <= now;
        if !due || !self.has_drawn_enough(index) {
            return false;
        }
        let Self {
            tunnels, config, ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("its timer is due");
        if tunnel.reliable.wait_again(&config.retransmit, now) {
            // A duplicate drew the second answer before the first interval was over.
            self.mark_ready(index);
        } else {
            self.counters.half_open_cut_short += 1;
            self.forget_half_open(index, TunnelEnd::Unanswered, now);
        }
        true
    }

    /// A new half-open tunnel. It is noted, so that it can be removed if it stays so.
    pub(super) fn add_half_open(&mut self, index: u32) {
        let (key, addr) = {
            let tunnel = self.tunnel_at(index);
            (tunnel.key, tunnel.route.peer.ip())
        };
        self.tally.half_open += 1;
        self.sources.add(addr);
        self.half_open_order.push_back(key);
        let most = 2 * self.tally.half_open as usize + ORDER_SLACK;
        if self.half_open_order.len() > most {
            let tunnels = &self.tunnels;
            self.half_open_order
                .retain(|&key| tunnels.get(key).is_some_and(Tunnel::is_half_open));
        }
    }

    /// A tunnel is no longer half open.
    pub(super) fn remove_half_open(&mut self, index: u32) {
        let addr = self.tunnel_at(index).route.peer.ip();
        self.tally.half_open -= 1;
        self.sources.remove(addr);
    }

    /// A tunnel's StopCCN was acknowledged or given up.
    pub(super) fn stop_ends(&mut self, index: u32) {
        self.tally.closing -= 1;
        let tunnel = self.tunnel_at(index);
        if !tunnel.originated && tunnel.up.is_none() {
            self.remove_half_open(index);
        }
    }

    /// Removes the tunnel that has been half open longest. A genuine peer needs
    /// one round trip; a flood mostly removes its own.
    pub(super) fn forget_oldest_half_open(&mut self, now: Instant) -> bool {
        while let Some(key) = self.half_open_order.pop_front() {
            let Some(tunnel) = self.tunnels.get(key).filter(|t| t.is_half_open()) else {
                continue;
            };
            self.counters.half_open_forgotten += 1;
            let (route, version, remote_id) = (tunnel.route, tunnel.version, tunnel.remote_id);
            let next = (tunnel.reliable.next_ns(), tunnel.reliable.nr());
            if tunnel.ending == Ending::No
                && !self.has_drawn_enough(key.index)
                && let Some(codes) = TunnelEnd::NoResources.codes(version)
            {
                self.refuse_stateless(route, version, remote_id, next, &codes);
            }
            self.forget_half_open(key.index, TunnelEnd::NoResources, now);
            return true;
        }
        false
    }

    /// Removes a half-open tunnel without a message.
    fn forget_half_open(&mut self, index: u32, reason: TunnelEnd, now: Instant) {
        if self.tunnel_at(index).ending == Ending::No {
            self.end_tunnel(index, Event::Forget, reason, now);
        } else {
            self.remove_tunnel(index);
        }
    }
}
