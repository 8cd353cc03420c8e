//! Translation of subscribers' IPv4 addresses (`[nat]`): starts it in the edge, forwards ports, passes its events to the
//! logs, applies changed settings. The translation itself is in the crate `nat` and in `edge`; the logs are written by a
//! thread, `log`. Start with [`start`] and [`Translation::work`].

mod log;

use std::collections::{HashMap, VecDeque};

use anyhow::{Context, Result};
use base::Instant;
use edge::{Asked, SubscriberKey};
use nat::{Discard, Event, Forward, ForwardError, ForwardRequest};
use reactor::clock;

use crate::config;
use crate::served::Edge;
use log::Item;
pub(super) use log::Log;

/// Events that are passed on in a turn.
const EVENTS: usize = 4_096;
/// Subscribers that have ended and whose names are still known.
const GONE_MAX: usize = 16_384;

/// The part of the translation that is not in the edge.
pub(super) struct Translation {
    pub(super) log: Log,
    /// The ports that the configuration forwards.
    forwards: Vec<config::NatForward>,
    /// Those of them that not all threads have answered for.
    asked: Vec<(config::NatForward, Asked<Result<Forward, ForwardError>>)>,
    /// Names of subscribers that have ended, by their numbers; oldest first. Events of other threads name them.
    gone: HashMap<u64, Box<[u8]>>,
    gone_order: VecDeque<u64>,
    has_more: bool,
}

/// Gives the edge its NAT, if `[nat]` is configured.
///
/// # Errors
/// The store cannot be opened, or no thread can be started.
pub(super) fn start(
    settings: Option<&config::Nat>,
    edge: &mut Edge,
    seed: [u8; 24],
) -> Result<Option<Box<Translation>>> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let (words, _) = seed.as_chunks::<8>();
    let mut config = settings.config.clone();
    config.seed = [0, 1, 2].map(|at: usize| u64::from_ne_bytes(words[at]));
    if let Some(record) = nat::record(&config) {
        tracing::info!("nat: deterministic ports (RFC 7422): {record}");
    }
    let large_pages = reactor::memory::large_pages;
    edge.set_nat(config, settings.inside.clone(), large_pages)
        .context("nat")?;
    let log = Log::start(&settings.log).context("nat.log")?;
    let mut translation = Translation {
        log,
        forwards: Vec::new(),
        asked: Vec::new(),
        gone: HashMap::new(),
        gone_order: VecDeque::new(),
        has_more: false,
    };
    for why in translation.forward(edge, &settings.forwards, clock::now()) {
        tracing::warn!("nat.forward: {why}");
    }
    Ok(Some(Box::new(translation)))
}

impl Translation {
    /// Passes the events of the first thread's translation to the log.
    #[inline]
    pub(super) fn work(&mut self, edge: &mut Edge) {
        self.has_more = false;
        if !self.asked.is_empty() {
            self.hear();
        }
        let Some(first) = edge.poll_nat_event() else {
            return;
        };
        let mut items = vec![self.item(first, edge)];
        while let Some(event) = edge.poll_nat_event() {
            items.push(self.item(event, edge));
            self.has_more = items.len() == EVENTS;
            if self.has_more {
                break;
            }
        }
        self.log.push(items);
    }

    /// Passes the events of another thread to the log.
    pub(super) fn take(&mut self, events: &[Event], edge: &Edge) {
        if !events.is_empty() {
            let items = events.iter().map(|event| self.item(*event, edge));
            self.log.push(items.collect());
        }
    }

    /// A subscriber has ended.
    pub(super) fn gone(&mut self, subscriber: SubscriberKey, name: &[u8]) {
        let number = subscriber.to_token();
        if self.gone.insert(number, name.into()).is_none() {
            self.gone_order.push_back(number);
        }
        if self.gone_order.len() > GONE_MAX
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }

    /// Looks for the answers of other threads about forwarded ports.
    #[cold]
    fn hear(&mut self) {
        for (one, asked) in core::mem::take(&mut self.asked) {
            match asked.answer() {
                None => self.asked.push((one, asked)),
                Some(Ok(_)) => {}
                Some(Err(why)) => {
                    self.forwards.retain(|known| *known != one);
                    tracing::warn!("nat.forward: {}: {why}", one.external);
                }
            }
        }
    }

    /// Whether more events wait.
    pub(super) fn has_work(&self) -> bool {
        self.has_more
    }

    /// Whether other threads have to answer.
    pub(super) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Forwards exactly these ports, besides those that were added by a command. Returns what failed.
    fn forward(
        &mut self,
        edge: &mut Edge,
        wanted: &[config::NatForward],
        now: Instant,
    ) -> Vec<String> {
        let mut failed = Vec::new();
        for one in &self.forwards {
            if !wanted.contains(one) {
                let external = (*one.external.ip(), one.external.port());
                let _ = edge.unforward_port(one.protocol, external, now);
            }
        }
        let before = core::mem::take(&mut self.forwards);
        for one in wanted {
            if before.contains(one) {
                self.forwards.push(*one);
                continue;
            }
            let wish = ForwardRequest {
                protocol: one.protocol,
                inside: *one.inside.ip(),
                inside_port: one.inside.port(),
                external: Some((*one.external.ip(), one.external.port())),
                subscriber: None,
                lifetime: None,
            };
            let Some(asked) = edge.forward_port(&wish, now) else {
                continue;
            };
            match asked.answer() {
                Some(Err(why)) => failed.push(format!("{}: {why}", one.external)),
                Some(Ok(_)) => self.forwards.push(*one),
                None => {
                    self.forwards.push(*one);
                    self.asked.push((*one, asked));
                }
            }
        }
        failed
    }

    /// Applies other settings. Returns the keys that cannot be applied, each with the reason.
    pub(super) fn reload(
        &mut self,
        edge: &mut Edge,
        new: &config::Nat,
        now: Instant,
    ) -> Vec<(&'static str, String)> {
        let mut failed = Vec::new();
        // What needs a restart stays as it is.
        let Some(old) = edge.nat_config() else {
            return failed;
        };
        let mut config = new.config.clone();
        config.port_first = old.port_first;
        config.block_ports = old.block_ports;
        config.deterministic = old.deterministic.clone();
        config.limits.mappings_max = old.limits.mappings_max;
        config.limits.sessions_max = old.limits.sessions_max;
        config.limits.subscribers_max = old.limits.subscribers_max;
        let fixed = "needs a restart, because mode is \"deterministic\"";
        let is_deterministic = config.deterministic.is_some();
        if is_deterministic && config.externals != old.externals {
            config.externals = old.externals.clone();
            failed.push(("nat.external", fixed.to_owned()));
        }
        let fixed_inside = config.deterministic.as_ref().map(|one| one.inside.clone());
        if let Err(why) = edge.reconfigure_nat(config) {
            return vec![("nat.", why.to_string())];
        }
        match fixed_inside {
            Some(inside) if inside != new.inside => {
                failed.push(("nat.inside", fixed.to_owned()));
            }
            _ => edge.set_nat_inside(new.inside.clone()),
        }
        let refused = self.forward(edge, &new.forwards, now);
        if !refused.is_empty() {
            failed.push(("nat.forward", refused.join("; ")));
        }
        self.log.set(&new.log);
        failed
    }

    /// The event with the name of its subscriber.
    fn item(&self, event: Event, edge: &Edge) -> Item {
        let tag = match &event {
            Event::BlockAllocated(block, _) | Event::BlockFreed(block, _) => block.tag,
            Event::ForwardAdded(forward, _) | Event::ForwardRemoved(forward, _) => forward.tag,
            Event::PoolUsedUp { tag, .. } | Event::SubscriberLimit { tag, .. } => *tag,
        };
        let view = edge.subscriber(SubscriberKey::from_token(tag));
        let gone = || self.gone.get(&tag).cloned().unwrap_or_default();
        described(event, view.map_or_else(gone, |view| view.name.into()))
    }
}

/// The event with the name of its subscriber, and a line of the daemon's log about a shortage.
fn described(event: Event, name: Box<[u8]>) -> Item {
    let subscriber = || String::from_utf8_lossy(&name);
    match &event {
        Event::PoolUsedUp { inside, .. } => tracing::warn!(
            subscriber = %subscriber(), %inside, "nat: no free port block; new connections are dropped until one is free"
        ),
        Event::SubscriberLimit { inside, why, .. } => match why {
            Discard::AddressUsedUp => tracing::warn!(
                subscriber = %subscriber(), %inside, "nat: no free port block at its external address"
            ),
            why => tracing::info!(subscriber = %subscriber(), %inside, "nat: {why}"),
        },
        Event::BlockAllocated(..)
        | Event::BlockFreed(..)
        | Event::ForwardAdded(..)
        | Event::ForwardRemoved(..) => {}
    }
    Item { event, name }
}
