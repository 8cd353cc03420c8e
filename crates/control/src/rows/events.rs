//! Rows of the event loop, and of the process.

use std::fmt::Display;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::text;

row! {
    /// A watched descriptor.
    #[derive(Serialize)]
    Descriptor<'a> is "event.descriptor/1" as Table {
        /// The descriptor's number.
        fd: i32 = [id "FD"],
        /// What it belongs to.
        owner: &'a str = [text "OWNER"],
        /// What it is watched for: reading, writing.
        #[serde(serialize_with = "text")]
        interest: &'a dyn Display = [text "INTEREST"],
        /// Waits that it ended.
        wakeups: u64 = [counter "WAKE-UPS"],
    }
}

row! {
    /// All waits of the poller.
    #[derive(Serialize)]
    Waits<'a> is "event.waits/1" as Block {
        /// The system call: epoll or poll.
        poller: &'a str = [text "poller"],
        /// The store of descriptors.
        descriptors: &'a str = [text "descriptor store"],
        /// Descriptors watched.
        watched: u64 = [gauge "watched"],
        /// Waits so far.
        waits: u64 = [counter "waits"],
        /// Waits that ended without a ready descriptor.
        empty: u64 = [counter "empty waits"],
        /// Ready descriptors, summed over all waits.
        ready: u64 = [counter],
        /// Events of descriptors that were already closed.
        stale: u64 = [counter "stale events"],
        /// Descriptors that the poller did not accept.
        refused: u64 = [counter "refused descriptors"],
        /// Ready descriptors per wait.
        ready_per_wait: f64 = [gauge Ratio "ready per wait"],
        /// Ready descriptors over watched ones.
        ready_to_watched: f64 = [gauge Share "ready of watched"],
        /// Waits per second.
        waits_per_s: f64 = [gauge PerSecond "waits per second"],
        /// Time spent waiting.
        waited_s: f64 = [counter Seconds "time idle"],
        /// Time spent working.
        busy_s: f64 = [counter Seconds "time busy"],
    }
}

row! {
    /// The timer store.
    #[derive(Serialize)]
    Timers<'a> is "event.timers/1" as Block {
        /// The kind of store.
        store: &'a str = [text "timer store"],
        /// Timers armed.
        armed: u64 = [gauge "armed"],
        /// Time until the next deadline; negative if it is overdue.
        next_ms: Option<f64> = [gauge Millis "next deadline (ms)"],
        /// The timer of that deadline.
        next_timer: Option<&'a str> = [text "next timer"],
        /// Wake-ups for timers.
        fired: u64 = [counter "wake-ups for timers"],
        /// Mean lateness.
        late_mean_us: f64 = [gauge Micros "lateness, mean (us)"],
        /// Lateness that 99 of 100 timers do not exceed.
        late_p99_us: f64 = [gauge Micros "lateness, p99 (us)"],
        /// Largest lateness.
        late_max_us: f64 = [gauge Micros "lateness, max (us)"],
    }
}

row! {
    /// A bucket of timer lateness.
    #[derive(Serialize)]
    LatenessClass<'a> is "event.lateness/1" as Table {
        /// Upper bound of the bucket, exclusive; null: no bound.
        below_us: Option<f64> = [id Micros "LATENESS BELOW (US)"],
        /// Timers in the bucket.
        timers: u64 = [counter "TIMERS"],
    }
}

row! {
    /// A kind of work.
    #[derive(Serialize)]
    Handler<'a> is "event.handler/1" as Table {
        /// The handler's name.
        name: &'a str = [id text "HANDLER"],
        /// Calls so far.
        calls: u64 = [counter "CALLS"],
        /// Time of all calls.
        total_us: f64 = [counter Micros "TOTAL (US)"],
        /// Mean time of a call.
        mean_us: f64 = [gauge Micros "MEAN (US)"],
        /// Time of the longest call.
        longest_us: f64 = [gauge Micros "LONGEST (US)"],
    }
}

row! {
    /// A call of a handler that took longer than `event.overrun_ms`.
    #[derive(Serialize)]
    Overrun<'a> is "event.overrun/1" as Table {
        /// The handler's name.
        handler: &'a str = [id text "OVERRUN OF"],
        /// How long ago it ended.
        s_ago: f64 = [gauge Seconds "AGO"],
        /// The time from its start to its end.
        wall_ms: f64 = [gauge Millis "WALL (MS)"],
        /// The time of these in which the thread ran. In the rest of the time, the kernel ran something else.
        cpu_ms: f64 = [gauge Millis "CPU (MS)"],
        /// Pieces of work done.
        calls: u64 = [gauge "CALLS"],
        /// Descriptors that were ready meanwhile: their owners, each with a count.
        waiting: String = [text "KEPT WAITING"],
        /// The timer that was latest after the overrun; null: none was late.
        timer: Option<&'a str> = [text "TIMER"],
        /// How late this timer was.
        timer_late_ms: Option<f64> = [gauge Millis "LATE (MS)"],
    }
}

row! {
    /// A thread that forwards packets. The first shard also does everything else.
    #[derive(Serialize)]
    Shard<'a> is "event.shard/1" as Table {
        /// The shard's number.
        shard: usize = [id "SHARD"],
        /// The kernel's id of its thread.
        thread: i32 = [id],
        /// CPU time.
        cpu_s: f64 = [counter Seconds Number "CPU (S)"],
        /// Packets from subscribers.
        packets_in: u64 = [counter "PACKETS IN"],
        /// Packets to subscribers.
        packets_out: u64 = [counter "PACKETS OUT"],
        /// Packets dropped.
        discarded: u64 = [counter "DISCARDED"],
        /// Frames handed to the first shard: control messages, PPP frames, numbered sessions.
        left: u64 = [counter "TO MAIN"],
        /// Of these, frames that the first shard dropped because its queue was full.
        left_dropped: u64 = [counter "DROPPED THERE"],
        /// Subscribers with their queues on this shard.
        queues: u32 = [gauge "QUEUES"],
        /// Packets handed to the shard with their subscriber's queues.
        handed_over: u64 = [counter "HANDED OVER"],
        /// ICMP errors sent.
        icmp_errors: u64 = [counter],
        /// Log lines dropped.
        not_logged: u64 = [counter],
        /// Datagrams received.
        udp_received: u64 = [counter "DATAGRAMS IN"],
        /// Datagrams sent.
        udp_sent: u64 = [counter "DATAGRAMS OUT"],
        /// Reads of the TUN device.
        tun_read: u64 = [counter "TUN READS"],
        /// Writes of the TUN device.
        tun_written: u64 = [counter "TUN WRITES"],
    }
}

row! {
    /// A system call.
    #[derive(Serialize)]
    SysCall<'a> is "event.syscall/1" as Table {
        /// Its name.
        name: &'a str = [id text "SYSTEM CALL"],
        /// Calls so far.
        calls: u64 = [counter "CALLS"],
    }
}

row! {
    /// What the process has used and holds.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    Server is "server/1" as Block {
        /// Process id.
        pid: u32 = [id "pid"],
        /// Time since the start.
        uptime_s: f64 = [gauge Seconds "uptime"],
        /// CPU time in user mode.
        user_us: u64 = [counter Micros "CPU, user (us)"],
        /// CPU time in the kernel.
        system_us: u64 = [counter Micros "CPU, system (us)"],
        /// Resident memory.
        rss_bytes: u64 = [gauge Bytes "memory"],
        /// Largest resident memory so far.
        rss_max_bytes: u64 = [gauge Bytes "memory, max"],
        /// Addresses bound by the LNS.
        lns: Vec<SocketAddr> = [text "LNS at"],
        /// Addresses bound by the LAC.
        lac: Vec<SocketAddr> = [text "LAC at"],
        /// Addresses bound by the BGP speaker.
        #[serde(default)]
        bgp: Vec<SocketAddr> = [text "BGP at"],
        /// Tunnels, without those that are closing or held.
        tunnels: u64 = [gauge "tunnels"],
        /// Established tunnels.
        established: u64 = [gauge "  established"],
        /// Tunnels that are being opened.
        opening: u64 = [gauge "  opening"],
        /// Tunnels whose StopCCN is not yet acknowledged.
        closing: u64 = [gauge "  closing"],
        /// Closed tunnels that still acknowledge late duplicates.
        held: u64 = [gauge "held for late duplicates"],
        /// Sessions.
        sessions: u64 = [gauge "sessions"],
        /// Established sessions.
        sessions_established: u64 = [gauge "  established"],
        /// Peer addresses.
        peers: u64 = [gauge "peers"],
        /// Timers armed.
        timers: u64 = [gauge "timers"],
        /// Sockets.
        sockets: u64 = [gauge "sockets"],
        /// Clients of the control socket.
        clients: u64 = [gauge "control clients"],
        /// Reloads that changed the configuration, without those that were undone.
        #[serde(default)]
        reloads: u64 = [counter "reloads"],
        /// Time until the last reload is undone, unless it is confirmed; null if none waits.
        #[serde(default)]
        undo_in_s: Option<f64> = [gauge Seconds "reload undone in"],
        /// Failures of descriptors since the start.
        #[serde(default)]
        faults: u64 = [counter "faults"],
        /// Descriptors that have failed, and their state.
        #[serde(default)]
        sources: Vec<ServerSource> = [part ServerSource "sources that failed"],
    }
}

row! {
    /// A key whose value a reload found changed.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    ReloadChange is "reload.change/1" as Table {
        /// The key with its section, such as `radius.server[one].timeout_s`.
        key: String = [id text "KEY"],
        /// The value before; null: the default.
        old: Option<String> = [text "OLD"],
        /// The value in the file; null: the default.
        new: Option<String> = [text "NEW"],
        /// `applied`, `applied-to-new` (to tunnels and sessions from now on), `restart` or `failed`.
        effect: String = [text "EFFECT"],
        /// Why it failed, or what else there is to know.
        note: Option<String> = [text "NOTE"],
    }
}

row! {
    /// The outcome of a reload.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    Reload is "reload/1" as Block {
        /// The configuration file.
        file: String = [id "file"],
        /// Keys whose new values apply.
        applied: usize = [gauge "applied"],
        /// Keys whose new values need a restart.
        restart: usize = [gauge "need a restart"],
        /// Keys whose new values could not be applied.
        failed: usize = [gauge "failed"],
        /// Time until the reload is undone, unless it is confirmed; null if it stays.
        undo_in_s: Option<f64> = [gauge Seconds "undone in"],
        /// Advice about the file.
        advice: Vec<String> = [text "advice"],
    }
}

row! {
    /// A kind of state that the daemon wants the kernel to have, and what the kernel has.
    #[derive(Serialize)]
    Kernel<'a> is "kernel/1" as Table {
        /// The part of the kernel: the TUN device, or a routing table.
        place: &'a str = [id text "PLACE"],
        /// The kind: link, addresses, routes.
        what: &'a str = [id text "WHAT"],
        /// How many the daemon wants.
        wanted: u64 = [gauge "WANTED"],
        /// How many of these the kernel has.
        present: u64 = [gauge "PRESENT"],
        /// How many of an earlier run are left.
        stale: u64 = [gauge "STALE"],
        /// How many were set again because the kernel had lost them.
        restored: u64 = [counter "RESTORED"],
        /// Stale ones removed.
        swept: u64 = [counter "SWEPT"],
        /// Changes that the kernel refused.
        refused: u64 = [counter "REFUSED"],
        /// Those that are missing; at most 16.
        missing: Vec<String> = [text "MISSING"],
        /// Why they are missing, or the state of the link.
        reason: Option<&'a str> = [text "REASON"],
    }
}

row! {
    /// A descriptor that has failed.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    ServerSource is part {
        /// What it is.
        name: String = [id text "SOURCE"],
        /// `works` again, `resting` while a resource is short, or `lost` until it is opened again.
        state: String = [text "STATE"],
        /// Failures so far.
        faults: u64 = [counter "FAULTS"],
        /// Time in this state.
        since_s: f64 = [gauge Seconds "SINCE"],
        /// Time until the next attempt; absent if it works.
        next_try_s: Option<f64> = [gauge Seconds "NEXT TRY"],
        /// The error of the last failure.
        reason: String = [text "REASON"],
    }
}
