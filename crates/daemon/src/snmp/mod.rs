//! The daemon as a subagent of an SNMP master agent (`[snmp]`): connects, and answers questions in slices, off the packet
//! path. The protocol is in the crate `agentx`.
//!
//! | module | contents |
//! |---|---|
//! | `link` | the connection |
//! | `mib` | objects, and the next one after any name |
//!
//! An agent that nobody asks costs one timer. Start with [`Snmp::turn`].

mod link;
mod mib;

use agentx::{Config, Event, Oid, Session, State};
use base::Instant;
use reactor::{Readiness, Slice};

use self::link::{Ended, Link};
use self::mib::Mib;
use super::core::Core;
use crate::config;

/// The agent.
pub(super) struct Snmp {
    master: config::Master,
    session: Session,
    link: Option<Link>,
    mib: Mib,
    /// How often in a row there was no session.
    failures: u64,
}

impl Snmp {
    /// An agent that connects at `now`.
    pub(super) fn new(settings: &config::Snmp, has_bgp: bool, now: Instant) -> Self {
        let subtrees = mib::subtrees(has_bgp).filter_map(Oid::new);
        let config = Config {
            id: Oid::default(),
            description: format!("headend {}", env!("CARGO_PKG_VERSION")),
            context: settings.context.clone(),
            subtrees: subtrees.collect(),
        };
        Self {
            master: settings.agentx.clone(),
            session: Session::new(config, now),
            link: None,
            mib: Mib::new(has_bgp),
            failures: 0,
        }
    }

    /// When [`Snmp::turn`] has work: `now` if it has some at once.
    pub(super) fn due(&self, now: Instant) -> Instant {
        match self.session.question() {
            Some(_) => now,
            None => self.session.poll_timeout(),
        }
    }

    /// The connection is ready: reads, and sends what waits.
    pub(super) fn ready(&mut self, readiness: Readiness, core: &mut Core) {
        let now = core.now;
        let Some(link) = &mut self.link else {
            return;
        };
        let served = match link.is_opening() {
            true => link.open(readiness).map(|is_open| {
                if is_open {
                    self.session.connected(now);
                }
            }),
            false => link.read(&mut self.session, now),
        };
        if served.is_err() {
            self.session.lost(now);
        }
        self.settle(core);
    }

    /// Fires the timer, and answers questions until the slice is over.
    pub(super) fn turn(&mut self, core: &mut Core, slice: Slice) {
        self.session.handle_timeout(core.now);
        while let Some(question) = self.session.question() {
            // A question that needs more than the slice is answered in a later turn.
            let Some(answer) = self.mib.answer(question, core, slice) else {
                break;
            };
            self.session.answer(answer, core.now);
            if slice.is_over() {
                break;
            }
        }
        self.settle(core);
    }

    /// Carries out the session's events, and sends its output.
    fn settle(&mut self, core: &mut Core) {
        self.act(core);
        if let Some(link) = &mut self.link
            && link.write(&mut self.session, core).is_err()
        {
            self.session.lost(core.now);
            self.act(core);
        }
    }

    fn act(&mut self, core: &mut Core) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Connect => match Link::connect(&self.master, core) {
                    Ok(link) => {
                        if !link.is_opening() {
                            self.session.connected(core.now);
                        }
                        self.link = Some(link);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "snmp: cannot connect to the master agent");
                        self.session.lost(core.now);
                    }
                },
                Event::Disconnect(reason) => {
                    if let Some(link) = self.link.take() {
                        link.close(core);
                    }
                    self.mib.forget();
                    self.failures += 1;
                    // A master that stays away is logged at each power of two.
                    if self.failures.is_power_of_two() {
                        let again_s = self.session.poll_timeout().since(core.now).as_secs_f64();
                        tracing::warn!(%reason, again_s, "snmp: no session with the master agent");
                    }
                }
                Event::Up => {
                    self.failures = 0;
                    tracing::info!("snmp: registered at the master agent");
                }
                Event::SubtreeRefused(subtree, error) => {
                    tracing::warn!(%subtree, error, "snmp: the master agent refused a subtree");
                }
            }
        }
    }

    /// Tells the master that the agent ends, as far as it takes that at once.
    pub(super) fn shut_down(&mut self) {
        if self.session.state() != State::Waiting {
            self.session.shut_down();
            if let Some(link) = &self.link {
                link.write_once(self.session.output());
            }
        }
    }
}

/// The connection cannot go on.
type Served<T> = Result<T, Ended>;
