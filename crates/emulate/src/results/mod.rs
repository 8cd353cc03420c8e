//! The results of a run: figures for programs, charts for people.
//!
//! All figures are virtual times or counts, so the same scenario and seed always give the same
//! results. The real time that a run took is not among them.

mod charts;
mod csv;
mod page;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;

use base::{Duration, Instant};
use serde::Serialize;

use crate::observer::{Observer, Record};
use crate::outcomes::Belief;
use crate::scenario::Scenario;
use crate::topology::Topology;

/// Limit of routers listed in the HTML page; JSON and CSV list all.
const LISTED_MAX: usize = 50;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// The scenario's title.
    pub title: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Number of routers.
    pub routers: usize,
    /// Number of links.
    pub links: usize,
    /// Session ends that are up when the run ends.
    pub endpoints_up: u64,
    /// Sessions that were lost, counted at each end.
    pub sessions_lost: u64,
    /// UPDATEs that a router found malformed (RFC 7606).
    pub malformed: u64,
    /// When the run ended, in seconds.
    pub end_s: f64,
    /// Messages sent.
    pub messages: u64,
    /// UPDATEs among them.
    pub updates: u64,
    /// All events, in the order in which they started.
    pub events: Vec<EventResult>,
    /// All addresses that events concern.
    pub addresses: Vec<AddressResult>,
    /// UPDATEs and changes over time.
    pub activity: Activity,
    /// Figures of each router.
    pub per_router: Vec<RouterResult>,
    /// Each router's route to each address over time; only in `outcomes.csv`.
    #[serde(skip)]
    pub outcomes: Vec<OutcomeResult>,
    /// Changes of such routes that were not recorded, because there were too many.
    pub outcomes_left_out: u64,
}

/// The course of one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventResult {
    /// A description of the event.
    pub label: String,
    /// Its kind in the word that scenarios use, or `start`.
    pub kind: &'static str,
    /// When it started, in seconds.
    pub at_s: f64,
    /// When its last step was taken, in seconds.
    pub last_step_s: f64,
    /// Seconds from the last step to the last change of any best route; none if none changed after
    /// it.
    pub convergence_s: Option<f64>,
    /// Seconds from the last step to the last UPDATE; none if there was none after it.
    pub quiet_after_s: Option<f64>,
    /// UPDATEs sent until the next event.
    pub updates: u64,
    /// Best routes that changed until the next event.
    pub changes: u64,
}

/// Where the routers' best routes to one address lead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AddressResult {
    /// The address.
    pub address: String,
    /// Announced prefixes that contain it, the longest first.
    pub prefixes: Vec<String>,
    /// The owner's autonomous system.
    pub owner_asn: u32,
    /// The hijackers.
    pub hijackers: Vec<u32>,
    /// The routers that leaked.
    pub leakers: Vec<u32>,
    /// Share of routers over time.
    pub shares: Vec<Share>,
    /// Number of routers with a path of 0, 1, 2... autonomous systems when the run ends.
    pub path_lengths: Vec<u32>,
    /// The largest share of routers whose route ever led to a hijacker or through a leaker.
    pub deceived_max: f64,
    /// The shares averaged over time, from the first route to the address until the run ends; none if there never was a
    /// route.
    pub mean: Option<ShareMean>,
}

/// Shares of all routers, averaged over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareMean {
    /// Routers whose best route leads to the owner.
    pub owner: f64,
    /// Routers whose best route leads to a hijacker or through a leaker.
    pub deceived: f64,
    /// Routers without a route.
    pub without: f64,
}

/// The route of one router to an address, from a time on.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeResult {
    /// The address.
    pub address: String,
    /// The router's name.
    pub router: String,
    /// Since when, in seconds since the start.
    pub at_s: f64,
    /// Where the route leads, in the words of the shares: `owner`, `deceived` or `without`.
    pub leads_to: &'static str,
    /// The longest match, the next hop, the originating AS and the AS path; empty where there is none. The next hop is
    /// the name of a router, or an address that no router has.
    pub route: [String; 4],
}

/// Shares of all routers at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Seconds since the start.
    pub at_s: f64,
    /// Routers whose best route leads to the owner.
    pub owner: f64,
    /// Routers whose best route leads to a hijacker or through a leaker.
    pub deceived: f64,
    /// Routers without a route.
    pub without: f64,
}

/// UPDATEs and changes in equal spans of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity {
    /// Length of a span, in seconds.
    pub span_s: f64,
    /// UPDATEs sent in each span.
    pub updates: Vec<u32>,
    /// Best routes changed in each span.
    pub changes: Vec<u32>,
}

/// Counters of one router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterResult {
    /// Its name.
    pub name: String,
    /// Its autonomous system.
    pub asn: u32,
    /// UPDATEs that it sent.
    pub updates_sent: u32,
    /// UPDATEs that it received.
    pub updates_received: u32,
    /// Changes of its best routes.
    pub changes: u32,
}

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) messages: u64,
    pub(crate) endpoints_up: u64,
    pub(crate) sessions_lost: u64,
    pub(crate) malformed: u64,
}

/// The observations of one part of a run.
pub(crate) struct Notes {
    pub(crate) observer: Observer,
    pub(crate) totals: Totals,
    pub(crate) end: Instant,
}

impl Results {
    /// Results of a run whose parts ran some of the routers each.
    pub(crate) fn of_parts(scenario: &Scenario, parts: Vec<Notes>) -> Self {
        let mut parts = parts.into_iter();
        let nothing = || Notes {
            observer: Observer::new(&scenario.topology, &scenario.events, scenario.run),
            totals: Totals::default(),
            end: Instant::ZERO,
        };
        let mut all = parts.next().unwrap_or_else(nothing);
        for part in parts {
            all.observer.absorb(part.observer);
            all.totals.messages += part.totals.messages;
            all.totals.endpoints_up += part.totals.endpoints_up;
            all.totals.sessions_lost += part.totals.sessions_lost;
            all.totals.malformed += part.totals.malformed;
            all.end = all.end.max(part.end);
        }
        Self::new(scenario, &all.observer, all.totals, all.end)
    }

    /// Results of a run of `scenario` that ended at `end`.
    pub(crate) fn new(
        scenario: &Scenario,
        observer: &Observer,
        totals: Totals,
        end: Instant,
    ) -> Self {
        let topology = &scenario.topology;
        let mut events: Vec<EventResult> =
            observer.records.iter().filter_map(event_result).collect();
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Self {
            title: scenario.title.clone(),
            seed: scenario.seed,
            routers: topology.routers.len(),
            links: topology.links.len(),
            endpoints_up: totals.endpoints_up,
            sessions_lost: totals.sessions_lost,
            malformed: totals.malformed,
            end_s: seconds(end),
            messages: totals.messages,
            updates: observer.updates,
            events,
            addresses: addresses(observer, topology.routers.len(), end),
            activity: Activity {
                span_s: observer.span.as_secs_f64(),
                updates: observer.activity.iter().map(|span| span.0).collect(),
                changes: observer.activity.iter().map(|span| span.1).collect(),
            },
            per_router: topology
                .routers
                .iter()
                .zip(&observer.routers)
                .map(|(router, did)| RouterResult {
                    name: router.name.clone(),
                    asn: router.asn,
                    updates_sent: did.updates_sent,
                    updates_received: did.updates_received,
                    changes: did.changes,
                })
                .collect(),
            outcomes: outcomes(observer, topology),
            outcomes_left_out: observer.outcomes.left_out,
        }
    }

    /// All results as JSON, ending in a newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'r> {
            schema: &'static str,
            #[serde(flatten)]
            results: &'r Results,
        }
        let document = Document {
            schema: "emulate.results/1",
            results: self,
        };
        let mut text =
            serde_json::to_string_pretty(&document).expect("numbers and names become JSON");
        text.push('\n');
        text
    }
}

fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

fn event_result(record: &Record) -> Option<EventResult> {
    let (first, last) = record.steps?;
    let after = |at: Option<Instant>| {
        let at = at.filter(|at| *at >= last)?;
        Some(Duration::as_secs_f64(at - last))
    };
    Some(EventResult {
        label: record.label.clone(),
        kind: record.kind,
        at_s: seconds(first),
        last_step_s: seconds(last),
        convergence_s: after(record.last_change),
        quiet_after_s: after(record.last_update),
        updates: record.updates,
        changes: record.changes,
    })
}

fn addresses(observer: &Observer, routers: usize, end: Instant) -> Vec<AddressResult> {
    let all = routers.max(1) as f64;
    let watches = observer.watches.iter().map(|watch| {
        let shares: Vec<Share> = watch
            .series
            .iter()
            .map(|(at, tally)| Share {
                at_s: seconds(*at),
                owner: f64::from(tally.owner) / all,
                deceived: f64::from(tally.other) / all,
                without: (all - f64::from(tally.owner) - f64::from(tally.other)) / all,
            })
            .collect();
        AddressResult {
            address: watch.address.to_string(),
            prefixes: watch.prefixes.iter().map(ToString::to_string).collect(),
            owner_asn: watch.owner_asn,
            hijackers: watch.hijackers.iter().map(|(asn, _)| *asn).collect(),
            leakers: watch.leakers.clone(),
            path_lengths: watch.path_lengths(),
            deceived_max: shares
                .iter()
                .map(|share| share.deceived)
                .fold(0.0, f64::max),
            mean: mean(&shares, seconds(end)),
            shares,
        }
    });
    watches.collect()
}

/// The shares averaged over time: each counts for as long as it holds.
fn mean(shares: &[Share], end_s: f64) -> Option<ShareMean> {
    let first = shares.first()?;
    let ends_s = shares.iter().skip(1).map(|share| share.at_s).chain([end_s]);
    let held: Vec<(&Share, f64)> = shares
        .iter()
        .zip(ends_s)
        .map(|(share, end_s)| (share, (end_s - share.at_s).max(0.0)))
        .collect();
    let span_s: f64 = held.iter().map(|(_, span_s)| span_s).sum();
    let of = |value: fn(&Share) -> f64| match span_s > 0.0 {
        true => {
            held.iter()
                .map(|(share, held_s)| value(share) * held_s)
                .sum::<f64>()
                / span_s
        }
        false => value(first),
    };
    Some(ShareMean {
        owner: of(|share| share.owner),
        deceived: of(|share| share.deceived),
        without: of(|share| share.without),
    })
}

fn outcomes(observer: &Observer, topology: &Topology) -> Vec<OutcomeResult> {
    let routers = topology.routers.iter();
    let names: HashMap<IpAddr, &str> = routers
        .map(|router| (router.address.into(), router.name.as_str()))
        .collect();
    let text = |text: Option<String>| text.unwrap_or_default();
    let rows = observer.outcomes.rows.iter().map(|row| {
        let route = row.route.as_ref();
        let next_hop = route.and_then(|route| route.next_hop);
        let named =
            next_hop.map(|hop| names.get(&hop).map_or(hop.to_string(), |&name| name.into()));
        OutcomeResult {
            address: observer.watches[row.watch].address.to_string(),
            router: topology.name(row.router).to_owned(),
            at_s: seconds(row.at),
            leads_to: match row.belief {
                Belief::Owner => "owner",
                Belief::Other => "deceived",
                Belief::Nothing => "without",
            },
            route: [
                text(route.map(|route| route.prefix.to_string())),
                text(named),
                text(
                    route
                        .and_then(|route| route.origin)
                        .map(|asn| asn.to_string()),
                ),
                text(route.map(|route| route.path.to_string())),
            ],
        }
    });
    rows.collect()
}
