//! The elementary steps into which an event is broken down.

use std::path::PathBuf;

use base::Duration;
use wire::bgp::Prefix;

use crate::event::{Action, Event};
use crate::topology::Topology;

/// What an event does at one time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A router announces a prefix, with the AS `origin` behind its own if that is given.
    Originate {
        router: u32,
        prefix: Prefix,
        origin: Option<u32>,
    },
    /// A router withdraws a prefix.
    Retract { router: u32, prefix: Prefix },
    /// A router starts or stops leaking.
    Leak { router: u32, on: bool },
    /// A session is reset.
    Reset { link: u32 },
    /// A session breaks, as sessions over a link with a mean life do.
    Lose { link: u32 },
    /// A link is cut or repaired.
    Link { link: u32, up: bool },
    /// A router fails or starts again.
    Power { router: u32, up: bool },
    /// A router announces a table.
    Replay {
        router: u32,
        file: PathBuf,
        routes_max: usize,
    },
    /// A message is sent to a neighbour as if the router had made it.
    Send {
        router: u32,
        neighbour: u32,
        message: Vec<u8>,
    },
}

/// A step, its time, and its event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timed {
    pub(crate) at: Duration,
    /// The record of the event; none for steps that no event caused.
    pub(crate) event: Option<u32>,
    pub(crate) step: Step,
}

impl Event {
    /// Whether the end of this action deserves a record of its own.
    pub(crate) fn ends(&self) -> bool {
        match &self.action {
            Action::Hijack { lasts, .. }
            | Action::Leak { lasts, .. }
            | Action::LinkFailure { lasts, .. }
            | Action::RouterFailure { lasts, .. } => lasts.is_some(),
            Action::Announce { .. }
            | Action::Withdraw { .. }
            | Action::Flap { .. }
            | Action::Reset { .. }
            | Action::Replay { .. }
            | Action::Malformed { .. } => false,
        }
    }

    // long: one short arm for each action
    /// The steps of an event. The first ones belong to the record `first`, those that end it to
    /// `last`. A flap's spread is drawn from `rng`.
    pub(crate) fn steps(
        &self,
        first: u32,
        last: u32,
        topology: &Topology,
        rng: &mut sim::Rng,
    ) -> Vec<Timed> {
        let at = |after: Duration, step: Step| Timed {
            at: self.at + after,
            event: Some(first),
            step,
        };
        let once = |step: Step| vec![at(Duration::ZERO, step)];
        let lasting = |begins: Step, lasts: Option<Duration>, ends: Step| {
            let end = lasts.map(|lasts| Timed {
                event: Some(last),
                ..at(lasts, ends)
            });
            once(begins).into_iter().chain(end).collect()
        };
        match self.action.clone() {
            Action::Announce { router, prefix } => once(Step::Originate {
                router,
                prefix,
                origin: None,
            }),
            Action::Withdraw { router, prefix } => once(Step::Retract { router, prefix }),
            Action::Hijack {
                router,
                victim,
                prefix,
                forged_origin,
                lasts,
            } => {
                let first = Step::Originate {
                    router,
                    prefix,
                    origin: forged_origin.then(|| topology.routers[victim as usize].asn),
                };
                lasting(first, lasts, Step::Retract { router, prefix })
            }
            Action::Leak { router, lasts } => {
                let leak = |on| Step::Leak { router, on };
                lasting(leak(true), lasts, leak(false))
            }
            Action::Flap {
                who,
                times,
                period,
                spread,
            } => flaps(&who, times, period, spread, &at, rng),
            Action::Reset { link } => once(Step::Reset { link }),
            Action::LinkFailure { link, lasts } => {
                let set = |up| Step::Link { link, up };
                lasting(set(false), lasts, set(true))
            }
            Action::RouterFailure { router, lasts } => {
                let set = |up| Step::Power { router, up };
                lasting(set(false), lasts, set(true))
            }
            Action::Replay {
                router,
                file,
                routes_max,
            } => once(Step::Replay {
                router,
                file,
                routes_max,
            }),
            Action::Malformed {
                router,
                neighbour,
                message,
            } => once(Step::Send {
                router,
                neighbour,
                message,
            }),
        }
    }
}

fn flaps(
    who: &[(u32, Prefix)],
    times: u32,
    period: Duration,
    spread: Duration,
    at: &impl Fn(Duration, Step) -> Timed,
    rng: &mut sim::Rng,
) -> Vec<Timed> {
    let mut steps = Vec::with_capacity(2 * who.len() * times as usize);
    let half = Duration::from_nanos(period.as_nanos() / 2);
    for &(router, prefix) in who {
        let late = rng.up_to(spread);
        for turn in 0..u64::from(times) {
            let down = late + period.saturating_mul(turn);
            steps.push(at(down, Step::Retract { router, prefix }));
            steps.push(at(
                down + half,
                Step::Originate {
                    router,
                    prefix,
                    origin: None,
                },
            ));
        }
    }
    steps
}
