//! Applies a new configuration while subscribers are connected.
//!
//! Most values are read where they are used, so a new value applies at once. Deadlines that were set before the change
//! are moved here, for some subscribers at a time. Start reading at [`Edge::set_config`].

use core::net::IpAddr;
use std::sync::Arc;

use base::{Duration, Instant};

use crate::access::Access;
use crate::config::Config;
use crate::edge::Edge;
use crate::event::Event;
use crate::path::change::Step;
use crate::subscriber::Phase;
use crate::switch::Index;

/// Subscribers whose deadlines one call moves.
const SLICE: u32 = 256;

/// Progress of a new configuration.
pub(crate) struct Retiming {
    pub(crate) since: Instant,
    /// The place of the next subscriber.
    next: u32,
    /// Whether each subscriber's networks are reported.
    tells: bool,
    /// Whether Router Advertisements have another content now.
    advertises: bool,
}

impl<A: Access> Edge<A> {
    /// Replaces the configuration. What tables and other cores rely on stays: whether sessions end here, our addresses,
    /// the limits on subscribers and routes, the number of paths, the clamping of the MSS, the history and the tick.
    ///
    /// The intervals between echoes, challenges and interim entries and the idle time apply to connected subscribers
    /// too, as do the templates, links and defaults of queues, once [`Edge::handle_timeout`] has come to them. If networks are reported from now on, those that lead to
    /// connected subscribers are reported then.
    pub fn set_config(&mut self, mut config: Config, now: Instant) {
        let plan = config.queues.plan();
        if plan != self.plan() && self.set_plan(plan.clone(), now).is_err() {
            config.queues = Arc::clone(&self.config.queues);
        }
        let old = &self.config;
        let tells = config.tells_networks && !old.tells_networks;
        let advertises = config.v6 != old.v6;
        let before = self.retiming.as_ref();
        let tells = tells || before.is_some_and(|retiming| retiming.tells);
        let advertises = advertises || before.is_some_and(|retiming| retiming.advertises);
        self.config = Config {
            terminate: old.terminate,
            address: old.address,
            address_v6: old.address_v6,
            clamp_mss: old.clamp_mss,
            subscribers_max: old.subscribers_max,
            routes_max: old.routes_max,
            paths: old.paths,
            by_session: old.by_session,
            history_max: old.history_max,
            tick: old.tick,
            ..config
        };
        self.set_gardens();
        self.change(Step::Isolate(self.config.isolate));
        self.switches.index = Index::new(&self.config.switching);
        self.retiming = Some(Retiming {
            since: now,
            next: 0,
            tells,
            advertises,
        });
    }

    /// Applies a new configuration to the next subscribers, if there is one.
    pub(crate) fn retime(&mut self, now: Instant) {
        let Some(Retiming {
            since,
            mut next,
            tells,
            advertises,
        }) = self.retiming.take()
        else {
            return;
        };
        for _ in 0..SLICE {
            let Some((index, _)) = self.subscribers.next_from(next) else {
                return;
            };
            next = index + 1;
            if tells {
                self.report_networks(index);
            }
            if advertises {
                self.advertise_again(index, now);
            }
            self.retime_subscriber(index, now);
        }
        self.retiming = Some(Retiming {
            since,
            next,
            tells,
            advertises,
        });
    }

    fn retime_subscriber(&mut self, index: u32, now: Instant) {
        let (idle, interim) = (self.config.idle_timeout, self.config.interim_interval);
        self.queue_again(index, now);
        let profile = self.at(index).profile.as_deref();
        if profile.is_some_and(|profile| profile.garden.is_some()) {
            self.publish(index);
        }
        self.with_link(index, now, |link, ctx| link.retime(ctx));
        let random = self.random.u64() >> 32;
        let Some(subscriber) = self.subscribers.at_mut(index) else {
            return;
        };
        if subscriber.phase() != Phase::Up || subscriber.is_client {
            return;
        }
        let idle = subscriber.limit(|own| own.idle_timeout, idle);
        subscriber.idle_at = moved(subscriber.idle_at, idle, now, idle);
        let interim = subscriber.limit(|own| own.interim_interval, interim);
        // Entries of many subscribers are spread over the interval.
        let part = u128::from(interim.as_nanos()) * u128::from(random);
        let part = Duration::from_nanos((part >> 32) as u64);
        subscriber.interim_at = moved(subscriber.interim_at, interim, now, part);
        self.settle_timer(index);
    }

    /// Reports the networks that lead to a subscriber.
    fn report_networks(&mut self, index: u32) {
        let subscriber = self.at(index);
        if subscriber.is_client {
            return;
        }
        let own = subscriber.held.map(|address| (IpAddr::from(address), 32));
        let networks = subscriber.profile.as_deref();
        let networks = networks.map_or(&[][..], |profile| &profile.routes).iter();
        let networks = networks.map(|network| (network.address(), network.length()));
        let leases = subscriber.v6.iter().flat_map(|family| family.held);
        let leases = leases
            .flatten()
            .map(|prefix| (prefix.address(), prefix.length()));
        let all: Vec<(IpAddr, u8)> = own.into_iter().chain(networks).chain(leases).collect();
        for (address, length) in all {
            if self.path.routes.holder(address, length) == Ok(Some(index)) {
                self.events.push_back(Event::Network {
                    address,
                    length,
                    leads: true,
                });
            }
        }
    }
}

/// A deadline after its limit changed: none without a limit, and one beyond the limit comes after `part` of it.
fn moved(at: Instant, limit: Duration, now: Instant, part: Duration) -> Instant {
    match limit {
        Duration::ZERO => Instant::FAR_FUTURE,
        limit if at <= now + limit => at,
        _ => now + part,
    }
}
