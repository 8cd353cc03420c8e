//! The hosts that use the line, by rate. The engine counts only while a client asks, and one reading serves all who ask
//! within [`SPAN`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use base::Instant as Moment;
use control::reply;
use control::rows::{QosHost, QosHosts};
use shaper::{Control, ControlError, HostBytes};

use crate::rows::HostsAsked;

/// The shortest time that rates cover.
const SPAN: Duration = Duration::from_millis(900);

/// Hosts in a reply, if the request does not say, and at most.
const COUNT: u64 = 20;
const COUNT_MAX: u64 = 1_000;

/// Bits per second of a host, up and down.
type Rates = [u64; 2];

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    read: Option<Instant>,
    span_s: Option<f64>,
    /// Hosts by the sum of their rates, the highest first, at most [`COUNT_MAX`].
    top: Vec<(IpAddr, Rates)>,
    hosts: u64,
    all: Rates,
    /// Bits per second of hosts that are not in `top`.
    rest_bps: u64,
}

impl Hosts {
    /// Appends the rows.
    ///
    /// # Errors
    /// The engine has ended.
    pub(super) fn show(
        &mut self,
        engine: &Control,
        asked: HostsAsked,
        (id, out): (u64, &mut Vec<u8>),
    ) -> Result<(), ControlError> {
        let now = Instant::now();
        if self.read.is_none_or(|read| now - read >= SPAN) {
            *self = Self::of(&engine.hosts()?, reactor::clock::now());
            self.read = Some(now);
        }
        let count = asked.count.unwrap_or(COUNT).min(COUNT_MAX) as usize;
        let listed = &self.top[..count.min(self.top.len())];
        let others_bps = self.rest_bps.saturating_add(sum(&self.top[listed.len()..]));
        let [up_bps, down_bps] = self.all;
        let sums = QosHosts {
            schema: QosHosts::SCHEMA.to_owned(),
            interval_s: self.span_s,
            hosts: self.hosts,
            up_bps,
            down_bps,
            others_bps,
        };
        reply::row(out, id, &sums);
        for (address, [up_bps, down_bps]) in listed {
            let row = QosHost {
                schema: QosHost::SCHEMA.to_owned(),
                address: address.to_string(),
                up_bps: *up_bps,
                down_bps: *down_bps,
            };
            reply::row(out, id, &row);
        }
        reply::end(out, id, 1 + listed.len() as u64);
        Ok(())
    }

    /// The rates of what was counted until `now`.
    fn of(counted: &[Option<HostBytes>; 2], now: Moment) -> Self {
        let mut rates: HashMap<IpAddr, Rates> = HashMap::new();
        let (mut all, mut rest_bps, mut span_s) = (Rates::default(), 0_u64, None);
        for (way, counted) in counted.iter().enumerate() {
            let Some(counted) = counted else { continue };
            let span_ns = (now - counted.since).as_nanos();
            let bps = |bytes: u64| {
                let bits = u128::from(bytes) * 8_000_000_000;
                u64::try_from(bits / u128::from(span_ns.max(1))).unwrap_or(u64::MAX)
            };
            for (address, bytes) in &counted.hosts {
                rates.entry(*address).or_default()[way] = bps(*bytes);
            }
            rest_bps = rest_bps.saturating_add(bps(counted.others));
            all[way] = bps(counted.hosts.values().sum::<u64>() + counted.others);
            span_s = Some((span_ns / 1_000_000) as f64 / 1e3);
        }
        let hosts = rates.len() as u64;
        let mut top: Vec<_> = rates.into_iter().collect();
        let order = |(address, [up, down]): &(IpAddr, Rates)| {
            (std::cmp::Reverse(up.saturating_add(*down)), *address)
        };
        let most = COUNT_MAX as usize;
        if top.len() > most {
            top.select_nth_unstable_by_key(most, order);
            rest_bps = rest_bps.saturating_add(sum(&top[most..]));
            top.truncate(most);
        }
        top.sort_unstable_by_key(order);
        Self {
            read: None,
            span_s,
            top,
            hosts,
            all,
            rest_bps,
        }
    }
}

fn sum(hosts: &[(IpAddr, Rates)]) -> u64 {
    let rates = hosts.iter().flat_map(|(_, rates)| rates);
    rates.fold(0, |sum, bps| sum.saturating_add(*bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(hosts: &[(u8, u64)], others: u64) -> Option<HostBytes> {
        let hosts = hosts.iter();
        Some(HostBytes {
            since: Moment::ZERO,
            hosts: hosts
                .map(|&(last, bytes)| (IpAddr::from([10, 0, 0, last]), bytes))
                .collect(),
            others,
        })
    }

    #[test]
    fn the_busiest_host_is_first_and_sums_have_all() {
        let up = counted(&[(1, 1_000), (2, 50)], 0);
        let down = counted(&[(2, 10_000), (3, 10)], 125);
        let now = Moment::ZERO + base::Duration::from_secs(2);
        let hosts = Hosts::of(&[up, down], now);
        let address = |last| IpAddr::from([10, 0, 0, last]);
        assert_eq!(
            hosts.top,
            [
                (address(2), [200, 40_000]),
                (address(1), [4_000, 0]),
                (address(3), [0, 40])
            ]
        );
        assert_eq!((hosts.hosts, hosts.all), (3, [4_200, 40_540]));
        assert_eq!((hosts.span_s, hosts.rest_bps), (Some(2.0), 500));
    }

    #[test]
    fn a_count_that_has_just_started_has_no_hosts() {
        let hosts = Hosts::of(&[None, None], Moment::ZERO);
        assert_eq!((hosts.hosts, hosts.span_s, hosts.all), (0, None, [0, 0]));
    }
}
