//! Carries out the steps of events.

use std::sync::Arc;

use base::{Duration, Instant};
use sim::Rng;

use super::World;
use super::links::End;
use super::post::{Lane, What};
use super::steps::{Step, Timed};
use crate::topology::Topology;

/// The text that a reset sends to the peer.
const RESET: &str = "reset by the scenario";

impl World {
    /// Starts a router that is off.
    pub(super) fn switch_on(&mut self, router: u32) {
        let scenario = Arc::clone(&self.scenario);
        let topology = &scenario.topology;
        let own = &topology.routers[router as usize];
        if !self.runs_here(router) {
            return;
        }
        self.listen(router);
        let starts = self.starts[router as usize];
        self.starts[router as usize] += 1;
        let mut seed = [0; 32];
        Rng::stream(scenario.seed, &["router", &own.name, &starts.to_string()]).fill(&mut seed);
        let near = self.lines.near(router);
        let config = self.kinds.config(topology, router, near, false);
        let mut speaker = bgp::Speaker::new(config, seed);
        speaker.watch_changes();
        speaker.start(self.now);
        if own.settings.originates {
            super::routes::originate(&mut speaker, Topology::own_prefix(router), None);
        }
        self.nodes[router as usize].speaker = Some(Box::new(speaker));
        self.wake(router);
    }

    /// A router fails: its connections break, and it loses all its state.
    fn switch_off(&mut self, router: u32) {
        let node = &mut self.nodes[router as usize];
        if node.speaker.take().is_none() {
            return;
        }
        let ends = std::mem::take(&mut node.ends);
        self.close_tcp(router);
        let node = &mut self.nodes[router as usize];
        let up = u64::from(std::mem::take(&mut node.up));
        self.totals.endpoints_up -= up;
        self.totals.sessions_lost += up;
        for End {
            peer, far, lane, ..
        } in ends
        {
            let Some(far) = far.filter(|_| lane != Lane::LOST) else {
                continue;
            };
            if let Some(end) = self.end_mut(peer, far) {
                end.far = None;
                end.lane = Lane::LOST;
            }
            if let Some(speaker) = &mut self.nodes[peer as usize].speaker {
                speaker.closed(far, self.now);
                self.wake(peer);
            }
        }
        self.post.forget(router);
        self.forget_beliefs(router);
    }

    /// Draws the first loss of each session whose link has a mean life.
    pub(super) fn lose_sessions_later(&mut self) {
        let scenario = Arc::clone(&self.scenario);
        let links = scenario.topology.links.iter().zip(0..);
        for (link, number) in links {
            let mean = scenario.topology.settings_of(link).mean_life;
            self.lose_session_later(number, mean);
        }
    }

    fn lose_session_later(&mut self, link: u32, mean: Duration) {
        if mean == Duration::ZERO {
            return;
        }
        let life_s = -mean.as_secs_f64() * (1.0 - self.rng.unit()).ln();
        let at = self.now + Duration::from_nanos((life_s * 1e9) as u64);
        let timed = Timed {
            at: at.since(Instant::ZERO),
            event: None,
            step: Step::Lose { link },
        };
        self.steps.add(at, timed);
    }

    /// Carries out a step.
    pub(super) fn take_step(&mut self, timed: Timed) {
        if let Some(event) = timed.event {
            self.observer.begin(event, self.now);
            self.steps_left -= 1;
        }
        match timed.step {
            Step::Originate {
                router,
                prefix,
                origin,
            } => self.with(router, |speaker, _| {
                super::routes::originate(speaker, prefix, origin);
            }),
            Step::Retract { router, prefix } => {
                self.with(router, |speaker, _| {
                    speaker.retract(prefix);
                });
            }
            Step::Leak { router, on } => self.leak(router, on),
            Step::Reset { link } => self.reset(link),
            Step::Lose { link } => {
                if self.carries(link) {
                    self.cut_tcp(link, false);
                } else {
                    self.cut(link, crate::topology::Detection::AtOnce);
                }
                let topology = &self.scenario.topology;
                let mean = topology
                    .settings_of(&topology.links[link as usize])
                    .mean_life;
                self.lose_session_later(link, mean);
            }
            Step::Link { link, up } => self.set_link(link, up),
            Step::Power { router, up: true } => {
                self.set_runs(router, true);
                if self.nodes[router as usize].speaker.is_none() {
                    self.switch_on(router);
                }
            }
            Step::Power { router, up: false } => {
                self.switch_off(router);
                self.set_runs(router, false);
            }
            Step::Replay {
                router,
                file,
                routes_max,
            } => self.replay(router, &file, routes_max),
            Step::Send {
                router,
                neighbour,
                message,
            } => self.send_as(router, neighbour, &message),
        }
    }

    /// Calls `act` with the speaker of a router, if it runs.
    pub(super) fn with(&mut self, router: u32, act: impl FnOnce(&mut bgp::Speaker, Instant)) {
        if let Some(speaker) = &mut self.nodes[router as usize].speaker {
            act(speaker, self.now);
            self.wake(router);
        }
    }

    /// Resets the session of a link at one end.
    fn reset(&mut self, link: u32) {
        let ends = self.scenario.topology.links[link as usize];
        let routers = &self.scenario.topology.routers;
        // A router outside of the emulation cannot be made to reset its session.
        let (from, to) = match routers[ends.a as usize].settings.outside {
            true => (ends.b, ends.a),
            false => (ends.a, ends.b),
        };
        let address = routers[to as usize].address;
        self.with(from, |speaker, now| {
            if let Some(peer) = speaker.peer(address.into()) {
                speaker.reset_peer(peer, RESET, now);
            }
        });
    }

    fn set_link(&mut self, link: u32, up: bool) {
        let was_up = self.set_line(link, up);
        if self.carries(link) {
            match (was_up, up) {
                (true, false) => self.cut_tcp(link, true),
                (false, true) => self.mend_tcp(link),
                (true, true) | (false, false) => {}
            }
            return;
        }
        if was_up && !up {
            let topology = &self.scenario.topology;
            let detection = topology
                .settings_of(&topology.links[link as usize])
                .detection;
            self.cut(link, detection);
        }
    }

    /// A router starts or stops leaking.
    fn leak(&mut self, router: u32, on: bool) {
        let scenario = Arc::clone(&self.scenario);
        let near = self.lines.near(router);
        let config = self.kinds.config(&scenario.topology, router, near, on);
        self.with(router, |speaker, now| {
            speaker.reload(config, now);
        });
    }

    /// Delivers a message to `neighbour` as if `router` had sent it over their session.
    fn send_as(&mut self, router: u32, neighbour: u32, message: &[u8]) {
        let over = |end: &&End| end.peer == neighbour && end.is_far_up;
        let conn = self.nodes[router as usize]
            .ends
            .iter()
            .find(over)
            .map(|end| end.conn);
        if let Some(conn) = conn {
            self.totals.messages += 1;
            self.observer.sent(router, 1, self.now);
            let number = self.post.keep(message);
            self.send(router, conn, What::Octets(number), message.len());
        } else if self.send_raw_tcp(router, neighbour, message) {
            self.totals.messages += 1;
            self.observer.sent(router, 1, self.now);
        }
    }
}
