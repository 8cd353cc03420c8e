//! Rows of the queues of shaped subscribers.

use std::net::IpAddr;

use serde::Serialize;

row! {
    /// The queue of a shaped subscriber in one direction.
    #[derive(Clone, Debug, Serialize)]
    Queue<'a> is "queue/1" as Table {
        /// The subscriber's name.
        subscriber: &'a str = [id text "SUBSCRIBER"],
        /// `down`: to the subscriber; `up`: from it.
        direction: &'a str = [id text "DIRECTION"],
        /// Its own rate in bit/s; null: no limit of its own.
        rate_bps: Option<u64> = [gauge PerSecond Bits "RATE"],
        /// The template of its queues.
        template: &'a str = [text "TEMPLATE"],
        /// The shared links, from the nearest to the topmost, separated by commas; empty: none.
        links: &'a str = [text "LINKS"],
        /// The shard that has it.
        shard: usize = [gauge "SHARD"],
        /// Queued packets.
        backlog_packets: u32 = [gauge "QUEUED"],
        /// Their bytes on the line.
        backlog_octets: u32 = [gauge Bytes "BYTES"],
        /// Packets that passed without waiting.
        passed: u64 = [counter "PASSED"],
        /// Packets that waited and were sent.
        waited: u64 = [counter "WAITED"],
        /// Bytes on the line of the packets that passed or were sent.
        octets: u64 = [counter Bytes],
        /// Packets dropped: the queue was full, or they were late.
        dropped: u64 = [counter "DROPPED"],
        /// Packets marked "congestion experienced" instead of dropped.
        marked: u64 = [counter "MARKED"],
        /// The delay that half of the packets that waited did not exceed, rounded up by at most half; null: none waited.
        delay_p50_us: Option<f64> = [gauge Micros "P50 (US)"],
        /// The same for 99 of 100 packets.
        delay_p99_us: Option<f64> = [gauge Micros "P99 (US)"],
    }
}

row! {
    /// A host with queued packets, behind a shaped subscriber.
    #[derive(Clone, Debug, Serialize)]
    QueueHost<'a> is "queue.host/1" as Table {
        /// The subscriber's name.
        subscriber: &'a str = [id text "SUBSCRIBER"],
        /// `down`: to the host; `up`: from it.
        direction: &'a str = [id text "DIRECTION"],
        /// The host's address; null if the packets have none.
        host: Option<IpAddr> = [id text "HOST"],
        /// Its flows with queued packets.
        flows: u32 = [gauge "FLOWS"],
        /// Its queued packets.
        backlog_packets: u32 = [gauge "QUEUED"],
        /// Their bytes on the line.
        backlog_octets: u32 = [gauge Bytes "BYTES"],
    }
}
