//! The row of what happens at the moment, and rows of what happened before: for pages, metrics and `headend top`.
//!
//! Start at [`Now`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

row! {
    /// The state of the whole daemon in one row. Two rows a second apart give the rates of that second.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    Now is "now/1" as Own {
        /// The time of the row, in seconds since 1970.
        at_s: f64 = [gauge Seconds],
        /// Time since the daemon started.
        uptime_s: f64 = [gauge Seconds],
        /// Subscribers and their sessions.
        subscribers: NowSubscribers = [part NowSubscribers],
        /// L2TP tunnels.
        tunnels: NowTunnels = [part NowTunnels],
        /// Address pools.
        pools: Vec<NowPool> = [part NowPool],
        /// Pools of IPv6 prefixes.
        #[serde(default)]
        prefix_pools: Vec<NowPool> = [part NowPool],
        /// RADIUS; null: no server is configured.
        radius: Option<NowRadius> = [part NowRadius],
        /// Packets of subscribers.
        traffic: NowTraffic = [part NowTraffic],
        /// The event loop.
        event_loop: NowLoop = [part NowLoop],
        /// BGP; null: no speaker is configured.
        bgp: Option<NowBgp> = [part NowBgp],
        /// Resident memory.
        rss_bytes: u64 = [gauge Bytes],
    }
}

row! {
    /// Subscribers and their sessions.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowSubscribers is part {
        /// Subscribers by state: `link`, `asking`, `networks`, `up`, `ending`.
        by_state: BTreeMap<String, u64> = [gauge],
        /// Subscribers whose packets may pass, by IP version: `ipv4` and `ipv6` alone, `both`.
        #[serde(default)]
        by_version: BTreeMap<String, u64> = [gauge],
        /// Sessions that came up.
        came_up: u64 = [counter],
        /// Sessions that ended, by Acct-Terminate-Cause.
        ended: BTreeMap<String, u64> = [counter],
        /// Admissions that failed, by reason.
        refused: BTreeMap<String, u64> = [counter],
    }
}

row! {
    /// L2TP tunnels.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowTunnels is part {
        /// Tunnels by state: `opening`, `established`, `closing`.
        by_state: BTreeMap<String, u64> = [gauge],
        /// Sessions established in them.
        sessions: u64 = [gauge],
        /// Control messages sent again.
        retransmissions: u64 = [counter],
    }
}

row! {
    /// A pool of addresses or prefixes.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowPool is part {
        /// The pool's name.
        name: String = [id text],
        /// Addresses or prefixes in it.
        size: u64 = [gauge],
        /// Those that are leased.
        used: u64 = [gauge],
    }
}

row! {
    /// RADIUS as a whole.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowRadius is part {
        /// Requests without a reply yet.
        outstanding: u64 = [gauge],
        /// Requests that wait for a free slot.
        waiting: u64 = [gauge],
        /// Requests that no server answered in time.
        failed: u64 = [counter],
        /// Replies to requests, by the upper bound of their round trip in microseconds (`inf`: no bound); not cumulative.
        round_trips: BTreeMap<String, u64> = [counter],
        /// Sum of these round trips.
        round_trips_us: f64 = [counter Micros],
    }
}

row! {
    /// Packets of subscribers.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowTraffic is part {
        /// Packets from subscribers.
        packets_in: u64 = [counter],
        /// Bytes from subscribers.
        octets_in: u64 = [counter Bytes],
        /// Packets to subscribers.
        packets_out: u64 = [counter],
        /// Bytes to subscribers.
        octets_out: u64 = [counter Bytes],
        /// Packets dropped, by reason.
        dropped: BTreeMap<String, u64> = [counter],
    }
}

row! {
    /// The event loop.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowLoop is part {
        /// Time spent waiting.
        waited_s: f64 = [counter Seconds],
        /// Time spent working.
        busy_s: f64 = [counter Seconds],
        /// Time of each handler.
        handlers_s: BTreeMap<String, f64> = [counter Seconds],
        /// Timers fired, by the upper bound of their lateness in microseconds (`inf`: no bound); not cumulative.
        lateness: BTreeMap<String, u64> = [counter],
        /// Sum of the lateness of all timers.
        lateness_us: f64 = [counter Micros],
        /// Handler calls over `event.overrun_ms`.
        overruns: u64 = [counter],
    }
}

row! {
    /// BGP.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    NowBgp is part {
        /// Peers, with dynamic ones.
        peers: u64 = [gauge],
        /// Peers with an established session.
        established: u64 = [gauge],
        /// Prefixes in the table.
        prefixes: u64 = [gauge],
        /// UPDATE messages received.
        updates_in: u64 = [counter],
        /// UPDATE messages sent.
        updates_out: u64 = [counter],
        /// The least time that was left on a hold timer when a message of its peer arrived, or that is left now on a timer
        /// whose peer is late, in the last complete second with messages; null: there was none.
        hold_margin_s: Option<f64> = [gauge Seconds],
    }
}

row! {
    /// One series of the past. A long series takes several rows.
    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    History is "history/1" as Own {
        /// The field of `now/1` that the series was taken from, such as `subscribers.by_state.up`; of an object also the
        /// sum, such as `traffic.dropped`; of a histogram a quantile in its unit, such as `radius.round_trips.p99`.
        series: String = [id text],
        /// Whether values are increases over a step; if not, they are values at its end.
        is_rate: bool = [text],
        /// The length of a step: 1 or 60 seconds.
        step_s: u32 = [id Seconds],
        /// The time of the end of the first step, in seconds since 1970.
        first_s: f64 = [id Seconds],
        /// A value per step, oldest first; null: the daemon was not running, or there was no value.
        values: Vec<Option<f64>> = [gauge],
    }
}
