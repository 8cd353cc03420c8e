//! The events that a scenario may contain, as data. `world::steps` turns each into the steps that
//! carry it out.

use std::path::PathBuf;

use base::Duration;
use wire::bgp::Prefix;

use crate::topology::Topology;

/// One event of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time of the event, since the start of the run.
    pub at: Duration,
    /// What the event does.
    pub action: Action,
}

/// What an event does. Routers and links are indices into the topology.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A router announces a prefix.
    Announce {
        /// The router.
        router: u32,
        /// The prefix.
        prefix: Prefix,
    },
    /// A router withdraws a prefix that it announced.
    Withdraw {
        /// The router.
        router: u32,
        /// The prefix.
        prefix: Prefix,
    },
    /// A router announces a victim's prefix, or a more specific part of it.
    Hijack {
        /// The hijacker.
        router: u32,
        /// The owner of the prefix.
        victim: u32,
        /// The announced prefix.
        prefix: Prefix,
        /// Whether the path ends in the victim's autonomous system, so that the origin looks right.
        forged_origin: bool,
        /// How long it lasts; to the end of the run if not given.
        lasts: Option<Duration>,
    },
    /// A router advertises every route to every neighbour, whichever neighbour it learned the route
    /// from.
    Leak {
        /// The router.
        router: u32,
        /// How long it lasts; to the end of the run if not given.
        lasts: Option<Duration>,
    },
    /// Prefixes are withdrawn and announced again, several times.
    Flap {
        /// The routers, each with the prefix that it flaps.
        who: Vec<(u32, Prefix)>,
        /// Number of flaps.
        times: u32,
        /// Time from one withdrawal to the next; the prefix is withdrawn for half of it.
        period: Duration,
        /// Largest delay by which a router starts after the event, drawn by seed.
        spread: Duration,
    },
    /// A session is reset by one of its ends.
    Reset {
        /// The link of the session.
        link: u32,
    },
    /// A link fails.
    LinkFailure {
        /// The link.
        link: u32,
        /// Time until it is repaired; never if not given.
        lasts: Option<Duration>,
    },
    /// A router fails and loses all its state.
    RouterFailure {
        /// The router.
        router: u32,
        /// Time until it starts again; never if not given.
        lasts: Option<Duration>,
    },
    /// A router announces the routes of a table in an MRT file.
    Replay {
        /// The router.
        router: u32,
        /// The file.
        file: PathBuf,
        /// Limit of routes.
        routes_max: usize,
    },
    /// A router sends a malformed UPDATE to a neighbour.
    Malformed {
        /// The sender.
        router: u32,
        /// The receiver.
        neighbour: u32,
        /// The message with its header.
        message: Vec<u8>,
    },
}

impl Event {
    /// A short description of the event, with the routers' names.
    #[must_use]
    pub fn label(&self, topology: &Topology) -> String {
        let name = |router: u32| topology.name(router);
        let ends = |link: u32| {
            let link = topology.links[link as usize];
            format!("{} - {}", name(link.a), name(link.b))
        };
        match &self.action {
            Action::Announce { router, prefix } => format!("{} announces {prefix}", name(*router)),
            Action::Withdraw { router, prefix } => format!("{} withdraws {prefix}", name(*router)),
            Action::Hijack {
                router,
                victim,
                prefix,
                forged_origin,
                ..
            } => {
                let how = if *forged_origin {
                    " behind a forged origin"
                } else {
                    ""
                };
                format!(
                    "{} hijacks {prefix} of {}{how}",
                    name(*router),
                    name(*victim)
                )
            }
            Action::Leak { router, .. } => format!("{} leaks", name(*router)),
            Action::Flap { who, times, .. } => match who.as_slice() {
                [(router, prefix)] => format!("{prefix} of {} flaps {times} times", name(*router)),
                several => format!("{} prefixes flap {times} times", several.len()),
            },
            Action::Reset { link } => format!("session {} is reset", ends(*link)),
            Action::LinkFailure { link, .. } => format!("link {} fails", ends(*link)),
            Action::RouterFailure { router, .. } => format!("{} fails", name(*router)),
            Action::Replay { router, file, .. } => {
                let file = file.file_name().unwrap_or(file.as_os_str());
                format!("{} announces {}", name(*router), file.to_string_lossy())
            }
            Action::Malformed {
                router, neighbour, ..
            } => format!(
                "{} sends {} a malformed UPDATE",
                name(*router),
                name(*neighbour)
            ),
        }
    }

    /// The kind of the event, in the word that scenarios use.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.action {
            Action::Announce { .. } => "announce",
            Action::Withdraw { .. } => "withdraw",
            Action::Hijack { .. } => "hijack",
            Action::Leak { .. } => "leak",
            Action::Flap { .. } => "flap",
            Action::Reset { .. } => "reset",
            Action::LinkFailure { .. } => "link_failure",
            Action::RouterFailure { .. } => "router_failure",
            Action::Replay { .. } => "replay",
            Action::Malformed { .. } => "malformed",
        }
    }
}
