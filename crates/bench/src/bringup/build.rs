//! The designs that are compared: the five builds of the published benchmark, imitated by switching
//! parts of this program, and our own designs.

use std::io;

use reactor::{PollerKind, Reactor, StoreKind};

/// A design, as a choice of parts in this program's configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Build {
    /// The published build's name, or a name of our own.
    pub(crate) name: &'static str,
    timers: &'static str,
    descriptors: &'static str,
    poller: &'static str,
    config_ids: &'static str,
    peer_lookup: &'static str,
    /// Whether each tunnel has a connected socket, and thus needs a descriptor.
    pub(crate) socket_each: bool,
}

/// headend with its default settings.
pub(crate) const DEFAULT: Build = Build {
    name: "default",
    timers: "wheel",
    descriptors: "slab",
    poller: "epoll",
    config_ids: "off",
    peer_lookup: "hash",
    socket_each: false,
};

/// The five published builds, then ours, then ours with one part changed at a time.
pub(crate) const BUILDS: [Build; 10] = [
    published("r2929", "list", "list", "poll-rebuilt", "probe", "list"),
    published("r3031", "list", "list", "poll-rebuilt", "off", "list"),
    published("r3125", "tree", "list", "poll-rebuilt", "off", "list"),
    published("r3158", "tree", "tree", "poll-kept", "off", "list"),
    published("r3181", "tree", "tree", "epoll", "off", "list"),
    DEFAULT,
    Build {
        name: "socket-each",
        socket_each: true,
        ..DEFAULT
    },
    Build {
        name: "poll-kept",
        poller: "poll-kept",
        socket_each: true,
        ..DEFAULT
    },
    Build {
        name: "io_uring",
        poller: "io_uring",
        ..DEFAULT
    },
    Build {
        name: "io_uring-each",
        poller: "io_uring",
        socket_each: true,
        ..DEFAULT
    },
];

const fn published(
    name: &'static str,
    timers: &'static str,
    descriptors: &'static str,
    poller: &'static str,
    config_ids: &'static str,
    peer_lookup: &'static str,
) -> Build {
    Build {
        name,
        timers,
        descriptors,
        poller,
        config_ids,
        peer_lookup,
        socket_each: true,
    }
}

impl Build {
    /// The build of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        BUILDS.iter().find(|build| build.name == name)
    }

    /// Whether this kernel can run it.
    ///
    /// # Errors
    /// What the kernel lacks.
    pub(crate) fn check(&self) -> io::Result<()> {
        let poller = PollerKind::ALL
            .into_iter()
            .find(|kind| kind.name() == self.poller)
            .expect("every build's poller is one of them");
        Reactor::new(poller, StoreKind::Slab).map(drop)
    }

    /// A description of its parts.
    pub(crate) fn label(&self) -> String {
        let sockets = if self.socket_each {
            "a socket per tunnel"
        } else {
            "one socket"
        };
        let mut label = format!(
            "{}, {}, {}, {sockets}",
            self.timers, self.descriptors, self.poller
        );
        if self.config_ids != "off" {
            label += ", config id probed";
        }
        label
    }

    /// The configuration of one end, `lns` or `lac`, without its `[control]` and `[log]` sections.
    pub(crate) fn config(&self, role: &str) -> String {
        let Self {
            timers,
            descriptors,
            poller,
            config_ids,
            peer_lookup,
            ..
        } = self;
        let sockets = if self.socket_each {
            "per-tunnel"
        } else {
            "shared"
        };
        format!(
            "[{role}]\nlisten = [\"127.0.0.1:0\"]\nsockets = \"{sockets}\"\n\
             [event]\ntimers = \"{timers}\"\ndescriptors = \"{descriptors}\"\npoller = \"{poller}\"\n\
             [l2tp]\nconfig_ids = \"{config_ids}\"\npeer_lookup = \"{peer_lookup}\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use lab::history::published;

    #[test]
    fn every_published_build_is_there_and_as_published() {
        for known in &published::BUILDS {
            let build = Build::named(known.name).unwrap();
            let words = |part: &str| match part {
                "list" => "sorted list",
                _ => "red-black tree",
            };
            assert_eq!(words(build.timers), known.timers, "{}", known.name);
            assert!(
                known.descriptors.starts_with(match build.descriptors {
                    "list" => "list",
                    _ => "red-black tree",
                }),
                "{}",
                known.name
            );
            let poller = match build.poller {
                "poll-rebuilt" => "poll, set rebuilt",
                "poll-kept" => "poll, set kept",
                other => other,
            };
            assert!(known.descriptors.ends_with(poller), "{}", known.name);
            assert_eq!(build.config_ids == "probe", known.config_id);
            assert!(build.socket_each);
        }
    }

    #[test]
    fn each_configuration_is_a_valid_one() {
        for build in &BUILDS {
            for role in ["lns", "lac"] {
                let text = format!("[control]\nsocket = \"/s\"\n{}", build.config(role));
                assert!(
                    daemon::config::parse(Path::new("f"), text.as_bytes()).is_ok(),
                    "{} {role}",
                    build.name
                );
            }
        }
    }
}
