//! The published figures, taken only from text and tables.
//!
//! Of the published curves, only the end points are known. No figure here is read off a picture.

/// The source of the first chapter.
pub const BRINGUP_SOURCE: &str = "ProL2TP 1.5 benchmark, 2013";

/// The source of the second chapter.
pub const POLL_SOURCE: &str = "FRRouting issue 12852, 2023";

/// The source of the third chapter; figures of its rows are in
/// [`Row::published`](crate::gateway::rows::Row::published).
pub const GATEWAY_SOURCE: &str = "Dan Siemon's blog, 2009 to 2014";

/// The source of the fourth chapter.
pub const CAPTURE_SOURCE: &str = "tcptrace 6.6.7 and its patches, 2005";

/// The source of the fifth chapter.
pub const FILTER_SOURCE: &str = "FreeBSD's user-space ppp, 2004";

/// The time of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// Seconds of user time.
    pub user_s: f64,
    /// Seconds of system time.
    pub system_s: f64,
    /// Seconds in all.
    pub real_s: f64,
}

/// With a look-up for each packet.
pub const FILTER_BEFORE: Spent = Spent {
    user_s: 2.822,
    system_s: 2.404,
    real_s: 120.31,
};

/// With the look-up only if the log is on, and the name cached.
pub const FILTER_AFTER: Spent = Spent {
    user_s: 2.082,
    system_s: 1.173,
    real_s: 86.06,
};

/// Nanoseconds of a function call on that machine.
pub const FILTER_CALL_NS: f64 = 1.2;

/// Nanoseconds of a system call on that machine.
pub const FILTER_SYSTEM_CALL_NS: f64 = 651.0;

/// Tunnels that the bring-up benchmark asked for.
pub const BRINGUP_TARGET: u64 = 10_000;

/// The build that the others are compared with: the first that reached the target at a steady rate.
pub const BRINGUP_REFERENCE: &str = "r3125";

/// The end of a published bring-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndPoint {
    /// Seconds, as rounded in the account; [`Build::wording`] says whether it is a lower or an
    /// upper bound.
    pub seconds: f64,
    /// Tunnels up by then, or the number at which it stalled.
    pub tunnels: u64,
}

/// One build of the published benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Build {
    /// Its revision.
    pub name: &'static str,
    /// Its timer store.
    pub timers: &'static str,
    /// Its descriptor store and poller.
    pub descriptors: &'static str,
    /// Whether each tunnel was given a config id.
    pub config_id: bool,
    /// Where its curve ends; `None` if no figure was published.
    pub end: Option<EndPoint>,
    /// The result in words.
    pub wording: &'static str,
    /// Its time relative to the reference build's, as text.
    pub relative: &'static str,
}

/// The five builds, in chronological order.
pub const BUILDS: [Build; 5] = [
    Build {
        name: "r2929",
        timers: "sorted list",
        descriptors: "list, poll, set rebuilt",
        config_id: true,
        end: Some(EndPoint {
            seconds: 10_800.0,
            tunnels: 7_000,
        }),
        wording: "more than 3 h, stalls just over 7,000",
        relative: "> 6",
    },
    Build {
        name: "r3031",
        timers: "sorted list",
        descriptors: "list, poll, set rebuilt",
        config_id: false,
        end: Some(EndPoint {
            seconds: 3_600.0,
            tunnels: 8_500,
        }),
        wording: "just under 1 h, stalls about 8,500",
        relative: "about 2",
    },
    Build {
        name: "r3125",
        timers: "red-black tree",
        descriptors: "list, poll, set rebuilt",
        config_id: false,
        end: Some(EndPoint {
            seconds: 1_800.0,
            tunnels: 10_000,
        }),
        wording: "10,000 in a little over 30 min",
        relative: "1",
    },
    Build {
        name: "r3158",
        timers: "red-black tree",
        descriptors: "red-black tree, poll, set kept",
        config_id: false,
        end: None,
        wording: "worse than r3125, no figure",
        relative: "> 1",
    },
    Build {
        name: "r3181",
        timers: "red-black tree",
        descriptors: "red-black tree, epoll",
        config_id: false,
        end: Some(EndPoint {
            seconds: 1_440.0,
            tunnels: 10_000,
        }),
        wording: "10,000 in 24 min",
        relative: "about 0.8",
    },
];

/// The build called `name`, and its index among the five.
pub fn build(name: &str) -> Option<(usize, &'static Build)> {
    BUILDS.iter().enumerate().find(|(_, b)| b.name == name)
}

/// The parts of a build, and its revision in brackets: `sorted list + poll (r3031)`. The first two builds differ only
/// in the config id.
pub fn named(name: &str) -> String {
    let Some((_, build)) = build(name) else {
        return name.to_owned();
    };
    let wait = match build.descriptors {
        text if text.ends_with("epoll") => "epoll",
        text if text.ends_with("set kept") => "poll with a kept set",
        _ => "poll",
    };
    let id = if build.config_id { " + config id" } else { "" };
    format!("{} + {wait}{id} ({name})", build.timers)
}

/// Pairs of builds; according to the account, the first is slower.
pub const SLOWER_THAN: [(&str, &str); 4] = [
    ("r2929", "r3031"),
    ("r3031", "r3125"),
    ("r3158", "r3125"),
    ("r3125", "r3181"),
];

/// r2929 took more than 3 h, r3181 24 min: at least this ratio between first and last build.
pub const FIRST_TO_LAST_MIN: f64 = 7.5;

/// Percentage of the daemon's CPU time that the epoll prototype saved.
pub const EPOLL_SAVED_PERCENT: f64 = 67.0;

/// Number of peers up to which the machine's CPU time grew quadratically.
pub const QUADRATIC_UP_TO_PEERS: u64 = 250;

/// Number of peers at which sessions dropped.
pub const DROPS_AT_PEERS: u64 = 384;

/// Packets of the capture that took 7 hours.
pub const CAPTURE_PACKETS: u64 = 2_870_000;

/// Least number of packets in one of its connections.
pub const CAPTURE_CONNECTION_PACKETS: u64 = 200_000;

/// The time of one version of the analyser for that capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// How it searches its lists: the name of a subject of [`crate::segments::Case::Recovery`].
    pub subject: &'static str,
    /// Seconds for the whole program.
    pub seconds: f64,
    /// The same as text.
    pub wording: &'static str,
    /// Whether it was measured with the file in memory and with raised priority, as the last two
    /// were.
    pub later: bool,
}

/// The versions, in the order of the account.
pub const WALKS: [Walk; 5] = [
    Walk {
        subject: "inserted and looked up from the head",
        seconds: 25_200.0,
        wording: "7 h, as released",
        later: false,
    },
    Walk {
        subject: "inserted from the head, not looked up",
        seconds: 54.0,
        wording: "54 s",
        later: false,
    },
    Walk {
        subject: "inserted from the head, looked up from the tail",
        seconds: 75.0,
        wording: "75 s",
        later: false,
    },
    Walk {
        subject: "inserted from the head, looked up from the tail",
        seconds: 40.15,
        wording: "40.15 s, in a later set-up",
        later: true,
    },
    Walk {
        subject: "inserted and looked up from the tail",
        seconds: 20.34,
        wording: "20.34 s, in a later set-up",
        later: true,
    },
];
