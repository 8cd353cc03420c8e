//! Rows of the threads that forward packets.

use super::{Rows, rounded};
use crate::core::Core;
use crate::shards::Stats;
use control::rows;

pub(super) fn rows(core: &Core, out: &mut Rows) {
    let first = Stats {
        udp: core.sockets.stats(),
        written: core.inside.written(),
        ..Stats::default()
    };
    let counts = core.edge.path_counts();
    for (shard, (counts, stats)) in counts.zip(core.shards.stats(first)).enumerate() {
        let cpu = reactor::usage::cpu_of(stats.thread).unwrap_or_default();
        out.push(&rows::Shard {
            schema: rows::Shard::SCHEMA,
            shard,
            thread: stats.thread,
            cpu_s: rounded(cpu.as_secs_f64()),
            packets_in: counts.packets_in,
            packets_out: counts.packets_out,
            discarded: counts.discarded,
            left: counts.left,
            left_dropped: stats.dropped,
            queues: core.edge.queues_on(shard),
            handed_over: counts.handed,
            icmp_errors: counts.errors,
            not_logged: counts.not_logged,
            udp_received: stats.udp.received,
            udp_sent: stats.udp.sent,
            tun_read: stats.written.read,
            tun_written: stats.written.calls,
        });
    }
}
