//! Divides flows into the two directions of the path.

use std::collections::HashMap;
use std::net::IpAddr;

use super::collect::Found;

/// A direction of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Direction {
    /// From the near hosts to the far ones.
    pub(super) is_up: bool,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        if self.is_up { "up" } else { "down" }
    }
}

/// Flows from the near side, and flows to it. Near is the host with more connections of the two, or else the one with
/// a private address, or else the client.
pub(super) fn divide(found: Vec<Found>) -> Vec<(Direction, Vec<Found>)> {
    let mut counts: HashMap<IpAddr, u32> = HashMap::new();
    for found in &found {
        for host in [found.from.0, found.to.0] {
            *counts.entry(host).or_default() += 1;
        }
    }
    let is_near = |host: IpAddr, other: IpAddr, port: u16, other_port: u16| {
        let rank = |host: IpAddr, port: u16| (is_private(host), counts[&host], port);
        rank(host, port) > rank(other, other_port)
    };
    let (up, down): (Vec<Found>, Vec<Found>) = found.into_iter().partition(|found| {
        let ((from, port), (to, other_port)) = (found.from, found.to);
        is_near(from, to, port, other_port)
    });
    [(true, up), (false, down)]
        .into_iter()
        .filter(|(_, flows)| !flows.is_empty())
        .map(|(is_up, flows)| (Direction { is_up }, flows))
        .collect()
}

/// RFC 1918, RFC 4193.
fn is_private(host: IpAddr) -> bool {
    match host {
        IpAddr::V4(host) => host.is_private(),
        IpAddr::V6(host) => host.is_unique_local(),
    }
}
