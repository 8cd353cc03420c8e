//! Rows of a running shaper, `headend qos run`: the process with its directions and interfaces, and the disciplines
//! and classes. docs/qos.md describes the fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RowType;

row! {
    /// A reading of a shaper.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    QosRun is "qos.run/1" as Own {
        /// The process.
        pid: u32 = [id],
        /// The policy's file.
        policy: String = [text],
        /// Time since the present content of the policy was loaded.
        policy_age_s: f64 = [gauge Seconds],
        /// Number of reloads.
        reloads: u64 = [counter],
        /// Time since the start.
        uptime_s: f64 = [gauge Seconds],
        /// The monotonic clock at the reading, in nanoseconds.
        taken_ns: u64 = [counter],
        /// Time between the two readings that the rates are computed from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval_s: Option<f64> = [gauge Seconds],
        /// The direction to the provider.
        up: QosWay = [part QosWay],
        /// The direction to the hosts.
        down: QosWay = [part QosWay],
        /// The interface towards the hosts.
        lan: QosPort = [part QosPort],
        /// The interface towards the provider.
        wan: QosPort = [part QosPort],
        /// Frame slots in use.
        frames: u32 = [gauge],
        /// Frame slots in total.
        frames_max: u32 = [gauge],
    }
}

/// The document of `headend qos show --json`: a [`QosRun`] whose directions contain their nodes.
pub const QOS_SHOWN: RowType = RowType {
    schema: "qos/1",
    ..QosRun::TYPE
};

row! {
    /// One direction.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    QosWay is part {
        /// The rate in force, if this direction is shaped.
        rate_bps: Option<u64> = [gauge PerSecond],
        /// The rate in the policy's file, which `qos.rate` leaves as it is, if this direction is shaped.
        #[serde(default)]
        file_bps: Option<u64> = [gauge PerSecond],
        /// The rate of the line itself, if the policy says so.
        #[serde(default)]
        line_bps: Option<u64> = [gauge PerSecond],
        /// The lowest rate that `qos.rate` accepts, if this direction is shaped.
        #[serde(default)]
        least_bps: Option<u64> = [gauge PerSecond],
        /// The counters of all queues together.
        #[serde(flatten)]
        sums: QosSums = [flat QosSums],
        /// Packets and frames outside the queues.
        lane: QosLane = [part QosLane],
        /// The disciplines and classes. The client fills them in; the shaper sends them as separate rows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<QosNode> = [part QosNode],
    }
}

row! {
    /// A queue's counters, under the names of `tc -s -j`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    QosSums is part {
        /// Bytes sent on the line.
        bytes: u64 = [counter Bytes "sent"],
        /// Packets sent.
        packets: u64 = [counter],
        /// Packets dropped.
        drops: u64 = [counter "dropped"],
        /// How often the queue had to wait for its rate.
        overlimits: u64 = [counter],
        /// Always 0: a dequeued packet is never put back.
        requeues: u64 = [counter],
        /// Backlog in bytes.
        backlog: u64 = [gauge Bytes],
        /// Backlog in packets.
        qlen: u64 = [gauge "waits"],
        /// Packets that were marked with congestion experienced.
        ecn_mark: u64 = [counter "marked"],
        /// The rates between two readings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rates: Option<QosRates> = [part QosRates],
    }
}

row! {
    /// The rates of a queue's counters.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    QosRates is part {
        /// Bits sent per second.
        bps: u64 = [gauge PerSecond "now"],
        /// Packets sent per second.
        pps: f64 = [gauge PerSecond "p/s"],
        /// Packets dropped per second.
        drops_ps: f64 = [gauge PerSecond "dropped/s"],
        /// Packets marked per second.
        marks_ps: f64 = [gauge PerSecond],
    }
}

row! {
    /// Counters outside the queues.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    QosLane is part {
        /// IP packets received.
        packets: u64 = [counter],
        /// Non-IP frames, which bypass the queues.
        past: u64 = [counter],
        /// Large frames that were segmented.
        cut: u64 = [counter],
        /// Frames that are too long for a slot, or that could not be segmented.
        too_long: u64 = [counter],
        /// Packets dropped because their queue was full.
        full: u64 = [counter],
        /// Packets dropped to make room for others.
        overlimit: u64 = [counter],
        /// Packets dropped because they waited too long.
        late: u64 = [counter],
        /// Packets dropped because no class matched.
        unclassified: u64 = [counter],
        /// Packets dropped because the whole buffer was full.
        no_room: u64 = [counter],
        /// Packets marked with congestion experienced.
        marked: u64 = [counter],
        /// Frames dropped because the outgoing interface was down.
        down: u64 = [counter],
    }
}

row! {
    /// An interface.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    QosPort is part {
        /// The interface's name.
        name: String = [id text],
        /// Frames received.
        received: u64 = [counter],
        /// Bytes received.
        received_bytes: u64 = [counter Bytes],
        /// Frames received that had to be segmented.
        received_large: u64 = [counter],
        /// Frames that the kernel dropped because the engine did not read them in time.
        missed: u64 = [counter],
        /// Frames received while no slot was free.
        no_room: u64 = [counter],
        /// Frames sent.
        sent: u64 = [counter],
        /// Bytes sent.
        sent_bytes: u64 = [counter Bytes],
        /// Frames that the kernel refused to send.
        refused: u64 = [counter],
        /// How often the send buffer was full.
        blocked: u64 = [counter],
        /// How often the interface was found down.
        downs: u64 = [counter],
        /// How often a read failed that succeeds on a working interface.
        #[serde(default)]
        faults: u64 = [counter],
    }
}

row! {
    /// A discipline or a class, as a row of its own.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    QosNodeRow is "qos.node/1" as Tree {
        /// The discipline or class.
        #[serde(flatten)]
        node: QosNode = [flat QosNode],
    }
}

row! {
    /// A discipline or a class.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    QosNode is part {
        /// `up` or `down`.
        way: String = [id text],
        /// The kind of discipline, as tc names it.
        kind: String = [id text],
        /// Whether it is a class.
        is_class: bool = [text],
        /// The handle of tc.
        handle: String = [id text],
        /// The parent's handle.
        parent: Option<String> = [text],
        /// The name of the class in the policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String> = [text],
        /// The options, as tc prints them.
        options: String = [text],
        /// The counters of the queue.
        #[serde(flatten)]
        sums: QosSums = [flat QosSums],
        /// Counters specific to the node's kind, under tc's names.
        details: BTreeMap<String, i64> = [gauge],
        /// The classifier's rules, in the order of evaluation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<QosRule> = [part QosRule],
    }
}

row! {
    /// One rule of a classifier.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    QosRule is part {
        /// The match: "proto 6 proto-dst 22".
        what: String = [text],
        /// The class of matching packets.
        class: String = [text],
        /// The section of the policy that the rule comes from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String> = [text],
    }
}

row! {
    /// The result of a reload.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    QosReloaded is "qos.reload/1" as Own {
        /// The policy's file.
        file: String = [text],
        /// The warnings, one per line.
        advice: Vec<String> = [text],
    }
}

row! {
    /// The rates in force after a change.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    QosRate is "qos.rate/1" as Own {
        /// The rate to the provider in bits per second, if this direction is shaped.
        up_bps: Option<u64> = [gauge PerSecond],
        /// The rate to the hosts in bits per second, if this direction is shaped.
        down_bps: Option<u64> = [gauge PerSecond],
        /// The warnings, one per line.
        advice: Vec<String> = [text],
    }
}

row! {
    /// The use of the line by all hosts together.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    QosHosts is "qos.hosts/1" as Own {
        /// The time that the rates cover; absent if the count has just started, and then there are no hosts yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval_s: Option<f64> = [gauge Seconds],
        /// Hosts with a packet in that time.
        hosts: u64 = [gauge],
        /// Bits per second to the provider.
        up_bps: u64 = [gauge PerSecond],
        /// Bits per second to the hosts.
        down_bps: u64 = [gauge PerSecond],
        /// Bits per second of hosts that are not listed.
        others_bps: u64 = [gauge PerSecond],
    }
}

row! {
    /// A host that uses the line.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    QosHost is "qos.host/1" as Table {
        /// Its address.
        address: String = [id text "HOST"],
        /// Bits per second that it sends to the provider.
        up_bps: u64 = [gauge PerSecond "UP-BPS"],
        /// Bits per second that it receives.
        down_bps: u64 = [gauge PerSecond "DOWN-BPS"],
    }
}
