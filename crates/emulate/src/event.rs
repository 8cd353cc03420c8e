//! What happens in an emulation, as data.

use std::path::PathBuf;

use base::Duration;
use wire::bgp::Prefix;

use crate::topology::Topology;

/// One event of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happens, since the start of the run.
    pub at: Duration,
    /// What happens.
    pub action: Action,
}

/// What happens in an event. Routers and links are indices into the topology.
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
    /// A router announces a victim's prefix, or a part of it.
    Hijack {
        /// The hijacker.
        router: u32,
        /// Whose prefix it is.
        victim: u32,
        /// What is announced.
        prefix: Prefix,
        /// Whether the victim's autonomous system stands at the path's end, so that the origin looks right.
        forged_origin: bool,
        /// How long it lasts; to the end if not given.
        lasts: Option<Duration>,
    },
    /// A router passes every route on to everyone, whoever it has it from.
    Leak {
        /// The router.
        router: u32,
        /// How long it lasts; to the end if not given.
        lasts: Option<Duration>,
    },
    /// Prefixes are withdrawn and announced again, several times.
    Flap {
        /// The routers, each with the prefix that it flaps.
        who: Vec<(u32, Prefix)>,
        /// How often.
        times: u32,
        /// From one withdrawal to the next; the prefix is away for half of it.
        period: Duration,
        /// Most by which each router starts later than the event, drawn by seed.
        spread: Duration,
    },
    /// A session is reset by one of its ends.
    Reset {
        /// The link that it runs over.
        link: u32,
    },
    /// A link fails.
    LinkFailure {
        /// The link.
        link: u32,
        /// After how long it is repaired; never if not given.
        lasts: Option<Duration>,
    },
    /// A router fails and loses all it knew.
    RouterFailure {
        /// The router.
        router: u32,
        /// After how long it starts again; never if not given.
        lasts: Option<Duration>,
    },
    /// A router announces the routes of a table in an MRT file.
    Replay {
        /// The router.
        router: u32,
        /// The file.
        file: PathBuf,
        /// Routes at most.
        routes_max: usize,
    },
    /// A router sends a neighbour an UPDATE that is wrong.
    Malformed {
        /// Who sends it.
        router: u32,
        /// Who gets it.
        neighbour: u32,
        /// The message with its header.
        message: Vec<u8>,
    },
}

impl Event {
    /// The event in a few words, with the routers' names.
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

    /// The kind of the event, as a scenario writes it.
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
