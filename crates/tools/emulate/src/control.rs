//! The control protocol of a running emulation: progress, events to inject, and `show` of any router.

use std::time::Instant as Moment;

use base::Instant;
use bgp::{PeerId, Speaker};
use serde::{Deserialize, Serialize};

use super::running::Running;
use ::control::lines::OUT_HIGH;
use ::control::reply::{self, Code, Refusal, Rows};
use ::control::request::{self, BgpNeighbors, BgpPeer, BgpRoutes, BgpWhose, Nothing};
use ::control::rows::{EmulateHandler, EmulateInjected, EmulateProgress, EmulateWaits};
use ::control::service::Answer;
use peering::show::{Aside, BgpShow};

/// The emulation's requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do")]
pub(super) enum Verb {
    /// The run's progress.
    #[serde(rename = "emulate.progress")]
    Progress(Nothing),
    /// Injects an event.
    #[serde(rename = "emulate.inject")]
    Inject(Event),
    #[serde(rename = "show.bgp.summary")]
    Summary(BgpWhose),
    #[serde(rename = "show.bgp.neighbors")]
    Neighbors(BgpNeighbors),
    #[serde(rename = "show.bgp.route")]
    Route(BgpRoutes),
    #[serde(rename = "show.bgp.rib")]
    Rib(BgpWhose),
    #[serde(rename = "show.bgp.events")]
    Events(BgpNeighbors),
    #[serde(rename = "bgp.peer")]
    Peer(BgpPeer),
    #[serde(rename = "show.event.poll")]
    Poll(BgpWhose),
    #[serde(rename = "show.event.cpu")]
    Cpu(BgpWhose),
    #[serde(rename = "show.event.timers")]
    Timers(BgpWhose),
}

/// An event as in a scenario, without its heading.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    pub(super) event: String,
}

/// The remaining rows of a reply.
pub(super) struct Rest {
    id: u64,
    router: String,
    show: BgpShow,
    rows: u64,
}

/// Answers the emulation's requests.
pub(super) struct Desk<'e> {
    pub(super) running: &'e mut Running,
    pub(super) started: Moment,
}

impl Answer for Desk<'_> {
    type Rest = Rest;

    fn answer(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<Rest> {
        let request = match request::parse::<Verb>(line) {
            Ok(request) => request,
            Err((id, refusal)) => {
                reply::refused(out, id, &refusal);
                return None;
            }
        };
        let id = request.id;
        match self.begin(id, request.what, out) {
            Ok(Some((router, show))) => {
                let rest = Rest {
                    id,
                    router,
                    show,
                    rows: 0,
                };
                self.go_on(rest, out)
            }
            Ok(None) => None,
            Err(refusal) => {
                reply::refused(out, id, &refusal);
                None
            }
        }
    }

    fn go_on(&mut self, rest: Rest, out: &mut Vec<u8>) -> Option<Rest> {
        let Rest {
            id,
            router,
            mut show,
            mut rows,
        } = rest;
        while out.len() < OUT_HIGH {
            let step = move |speaker: &mut Speaker, now: Instant| {
                let mut written = Vec::new();
                let mut part = Rows::new(&mut written, id);
                let left = show.step(speaker, Aside::default(), now, &mut part);
                let count = part.count;
                (left, written, count)
            };
            // A router that has failed in the meantime has no further rows.
            let found = self.running.with_router(&router, step);
            let (left, written, count) = found.unwrap_or_default();
            out.extend(written);
            rows += count;
            let Some(left) = left else {
                reply::end(out, id, rows);
                return None;
            };
            show = left;
        }
        Some(Rest {
            id,
            router,
            show,
            rows,
        })
    }
}

impl Desk<'_> {
    /// Replies to the client, or returns the router and the `show` that it asked for.
    fn begin(
        &mut self,
        id: u64,
        verb: Verb,
        out: &mut Vec<u8>,
    ) -> Result<Option<(String, BgpShow)>, Refusal> {
        match verb {
            Verb::Progress(_) => self.progress(id, out),
            Verb::Inject(event) => {
                let injected = self
                    .running
                    .inject(&event.event)
                    .map_err(|faults| Refusal::new(Code::BadRequest, faults.lines().join("; ")))?;
                let row = EmulateInjected {
                    schema: EmulateInjected::SCHEMA,
                    event: injected.label(&self.running.scenario().topology),
                    at_s: injected.at.as_secs_f64(),
                };
                reply::row(out, id, &row);
                reply::end(out, id, 1);
            }
            Verb::Summary(whose) => return self.of(whose.router, |_, _| Ok(BgpShow::Summary)),
            Verb::Rib(whose) => return self.of(whose.router, |_, _| Ok(BgpShow::Rib)),
            Verb::Timers(whose) => {
                return self.of(whose.router, |_, _| Ok(BgpShow::Holds(PeerId(0))));
            }
            Verb::Neighbors(asked) => {
                return self.of(asked.router.clone(), move |speaker, _| {
                    BgpShow::neighbors(&asked, speaker)
                });
            }
            Verb::Events(asked) => {
                return self.of(asked.router.clone(), move |speaker, now| {
                    BgpShow::events(&asked, speaker, now)
                });
            }
            Verb::Route(asked) => {
                return self.of(asked.router.clone(), move |speaker, _| {
                    BgpShow::routes(&asked, speaker)
                });
            }
            Verb::Peer(_) => {
                let message = "an emulation is changed by events alone, which are recorded: headend emulate inject, with kind = \"reset\"";
                return Err(Refusal::new(Code::Refused, message));
            }
            Verb::Poll(_) => self.poll(id, out),
            Verb::Cpu(_) => self.cpu(id, out),
        }
        Ok(None)
    }

    fn of(
        &mut self,
        router: Option<String>,
        show: impl FnOnce(&Speaker, Instant) -> Result<BgpShow, Refusal> + Send + 'static,
    ) -> Result<Option<(String, BgpShow)>, Refusal> {
        let name = self.named(router)?;
        let found = self
            .running
            .with_router(&name, move |speaker, now| show(speaker, now));
        let show = found.unwrap_or_else(|| Err(missing(&name)))?;
        Ok(Some((name, show)))
    }

    fn named(&self, router: Option<String>) -> Result<String, Refusal> {
        router.ok_or_else(|| {
            let routers = &self.running.scenario().topology.routers;
            let first = routers.first().map_or("r1", |router| router.name.as_str());
            let message =
                format!("an emulation has many routers: name one with --router, such as {first}");
            Refusal::new(Code::BadRequest, message)
        })
    }

    fn progress(&self, id: u64, out: &mut Vec<u8>) {
        let progress = self.running.progress();
        let elapsed = self.started.elapsed().as_secs_f64();
        let row = EmulateProgress {
            schema: EmulateProgress::SCHEMA,
            now_s: progress.now.as_secs_f64(),
            run_s: progress.run.as_secs_f64(),
            rate: progress.now.as_secs_f64() / elapsed.max(1e-9),
            endpoints_up: progress.endpoints_up,
            endpoints: progress.endpoints,
            sessions_lost: progress.sessions_lost,
            messages: progress.messages,
            updates: progress.updates,
            steps_left: progress.steps_left,
        };
        reply::row(out, id, &row);
        reply::end(out, id, 1);
    }

    /// The waits of the threads' event loops, and their cost.
    fn poll(&self, id: u64, out: &mut Vec<u8>) {
        let mut rows = Rows::new(out, id);
        for (stats, thread) in self.running.loops().iter().zip(1..) {
            let waits = &stats.waits;
            rows.push(&EmulateWaits {
                schema: EmulateWaits::SCHEMA,
                thread,
                poller: stats.poller.name(),
                watched: stats.watched,
                waits: waits.waits,
                empty: waits.empty,
                ready: waits.ready,
                ready_per_wait: waits.ready as f64 / waits.waits.max(1) as f64,
                ready_to_watched: waits.ready_ratio(),
                waits_per_s: waits.waits_per_second(),
                waited_s: waits.waited.as_secs_f64(),
                busy_s: waits.busy().as_secs_f64(),
            });
        }
        let count = rows.count;
        reply::end(out, id, count);
    }

    /// The time that threads spent in each handler.
    fn cpu(&self, id: u64, out: &mut Vec<u8>) {
        let mut rows = Rows::new(out, id);
        for (stats, thread) in self.running.loops().iter().zip(1..) {
            for handler in &stats.handlers {
                rows.push(&EmulateHandler {
                    schema: EmulateHandler::SCHEMA,
                    thread,
                    name: handler.name,
                    calls: handler.calls,
                    total_us: handler.total.as_nanos() as f64 / 1e3,
                    mean_us: handler.mean().as_nanos() as f64 / 1e3,
                    longest_us: handler.longest.as_nanos() as f64 / 1e3,
                });
            }
        }
        let count = rows.count;
        reply::end(out, id, count);
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::new(
        Code::NotFound,
        format!("no router is called \"{name}\", or it has failed"),
    )
}
