//! The variables of filters.

use trace::{Connection, Direction};

use super::{Subject, Value};

/// What kind of value a variable has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Signed,
    Unsigned,
    Truth,
    Text,
    Address,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Signed | Kind::Unsigned => "a number",
            Kind::Truth => "yes or no",
            Kind::Text => "a text",
            Kind::Address => "an address",
        }
    }
}

/// A variable.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// Its value for the client or the server.
    pub(super) value: fn(Subject<'_>, bool) -> Value,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn end(connection: &Connection, client: bool) -> &Direction {
    if client { &connection.a } else { &connection.b }
}

/// The variable of that name, in upper or lower case.
pub(super) fn by_name(name: &str) -> Option<&'static Variable> {
    let mut all = VARIABLES.iter();
    all.find(|variable| variable.name.eq_ignore_ascii_case(name))
}

fn address(subject: Subject<'_>, client: bool) -> (std::net::IpAddr, u16) {
    if client {
        subject.connection.a_end()
    } else {
        subject.connection.b_end()
    }
}

fn micros(time: i64) -> u64 {
    (time / 1000).max(0) as u64
}

/// Bytes per second over the whole connection; 0 if its duration is 0.
fn throughput(connection: &Connection, bytes: u64) -> u64 {
    let seconds = connection.elapsed() as f64 / 1e9;
    if seconds <= 0.0 {
        return 0;
    }
    (bytes as f64 / seconds + 0.5) as u64
}

/// A variable that is a field of a direction.
macro_rules! of_direction {
    ($name:literal, $kind:ident, $help:literal, |$direction:ident| $value:expr) => {
        Variable {
            name: $name,
            kind: Kind::$kind,
            help: $help,
            value: |subject, client| {
                let $direction = end(subject.connection, client);
                Value::Number(i128::from($value))
            },
        }
    };
}

/// All variables: tcptrace's in its order, then those it lacks.
#[rustfmt::skip]
pub(crate) static VARIABLES: &[Variable] = &[
    Variable { name: "hostname", kind: Kind::Text, help: "the host's name (its address unless --names)", value: |subject, client| {
        let mut text = String::new();
        let _ = subject.names.host(address(subject, client).0, &mut text);
        Value::Text(text)
    } },
    Variable { name: "portname", kind: Kind::Text, help: "the port's name (its number unless --names)", value: |subject, client| {
        let mut text = String::new();
        let _ = subject.names.port(address(subject, client).1, &mut text);
        Value::Text(text)
    } },
    Variable { name: "port", kind: Kind::Unsigned, help: "port", value: |subject, client| Value::Number(address(subject, client).1.into()) },
    of_direction!("mss", Signed, "maximum segment size in the SYN", |d| d.mss),
    of_direction!("f1323_ws", Truth, "window scaling in the SYN", |d| d.asked_scale),
    of_direction!("f1323_ts", Truth, "time stamps sent", |d| d.asked_timestamps),
    of_direction!("fsack_req", Truth, "SACK permitted in the SYN", |d| d.asked_sack),
    of_direction!("window_scale", Truth, "shift of the window", |d| d.scale),
    of_direction!("bad_behavior", Truth, "a SYN or FIN repeated with another number", |d| d.bad_behaviour),
    of_direction!("data_bytes", Unsigned, "bytes of data", |d| d.data_bytes),
    of_direction!("data_segs", Unsigned, "packets with data", |d| d.data_packets),
    of_direction!("data_segs_push", Unsigned, "packets with data and PSH", |d| d.pushed_packets),
    of_direction!("unique_bytes", Unsigned, "bytes of data without retransmissions", |d| d.unique_bytes),
    of_direction!("rexmit_bytes", Unsigned, "bytes retransmitted", |d| d.retransmitted_bytes),
    of_direction!("rexmit_segs", Unsigned, "retransmitted packets", |d| d.retransmitted_packets),
    of_direction!("ack_segs", Unsigned, "packets with ACK", |d| d.ack_packets),
    of_direction!("pureack_segs", Unsigned, "packets with only an ACK", |d| d.pure_acks),
    of_direction!("win_max", Unsigned, "largest window", |d| d.windows.max),
    of_direction!("win_min", Unsigned, "smallest window", |d| d.windows.min),
    of_direction!("win_zero_ct", Unsigned, "zero windows", |d| d.windows.zero),
    of_direction!("min_seq", Unsigned, "first sequence number", |d| d.first_sequence.unwrap_or(0)),
    of_direction!("max_seq", Unsigned, "sequence number after the last packet", |d| d.latest),
    of_direction!("num_sacks", Unsigned, "ACKs with SACK blocks", |d| d.sack_packets),
    of_direction!("max_sacks", Unsigned, "most SACK blocks in an ACK", |d| d.sack_blocks_max),
    of_direction!("segs", Unsigned, "packets", |d| d.packets),
    of_direction!("packets", Unsigned, "packets", |d| d.packets),
    of_direction!("syn_count", Unsigned, "SYNs", |d| d.syns),
    of_direction!("fin_count", Unsigned, "FINs", |d| d.fins),
    of_direction!("reset_count", Unsigned, "RSTs", |d| d.resets),
    of_direction!("min_seg_size", Unsigned, "smallest segment that is not empty", |d| d.segment_min),
    of_direction!("max_seg_size", Unsigned, "largest segment", |d| d.segment_max),
    of_direction!("out_order_segs", Unsigned, "packets out of order", |d| d.out_of_order_packets),
    of_direction!("sacks_sent", Unsigned, "packets with SACK blocks", |d| d.sacks_sent),
    of_direction!("ipv6_segs", Unsigned, "packets in IPv6", |d| d.ipv6_packets),
    Variable { name: "max_idle", kind: Kind::Unsigned, help: "longest silence (us)", value: |subject, client| {
        let (a, b) = subject.connection.idle_max(subject.end);
        Value::Number(micros(if client { a } else { b }.unwrap_or(0)).into())
    } },
    of_direction!("num_hw_dups", Unsigned, "hardware duplicates", |d| d.hardware_duplicates),
    of_direction!("initwin_bytes", Unsigned, "bytes in the first window", |d| d.initial_bytes),
    of_direction!("initwin_segs", Unsigned, "packets in the first window", |d| d.initial_packets),
    of_direction!("rtt_min", Unsigned, "shortest round-trip time (us)", |d| micros(d.rtt.min)),
    of_direction!("rtt_max", Unsigned, "longest round-trip time (us)", |d| micros(d.rtt.max)),
    of_direction!("rtt_count", Unsigned, "round-trip samples", |d| d.rtt.count),
    of_direction!("rtt_min_last", Unsigned, "shortest round-trip time from a last retransmission (us)", |d| micros(d.rtt_ambiguous.min)),
    of_direction!("rtt_max_last", Unsigned, "longest of these (us)", |d| micros(d.rtt_ambiguous.max)),
    of_direction!("rtt_count_last", Unsigned, "number of these", |d| d.rtt_ambiguous.count),
    of_direction!("rtt_amback", Unsigned, "ACKs for retransmitted segments", |d| d.rtt_ambiguous.count),
    of_direction!("rtt_cumack", Unsigned, "segments acknowledged by the ACK of a later one", |d| d.cumulative_acks),
    of_direction!("rtt_unkack", Unsigned, "ACKs of another kind: always 0", |_d| 0),
    of_direction!("rtt_dupack", Unsigned, "duplicate ACKs", |d| d.duplicate_acks),
    of_direction!("rtt_nosample", Unsigned, "ACKs for segments sent before a retransmission", |d| d.post_loss_acks),
    of_direction!("rtt_triple_dupack", Unsigned, "runs of three duplicate ACKs", |d| d.triple_duplicate_acks),
    of_direction!("retr_max", Unsigned, "most retransmissions of a segment", |d| d.retransmissions_max),
    of_direction!("retr_min_tm", Unsigned, "shortest time until a retransmission (us)", |d| micros(d.retransmission_times.min)),
    of_direction!("retr_max_tm", Unsigned, "longest of these (us)", |d| micros(d.retransmission_times.max)),
    of_direction!("trunc_bytes", Unsigned, "bytes that the capture cut off", |d| d.truncated_bytes),
    of_direction!("trunc_segs", Unsigned, "packets that the capture cut off", |d| d.truncated_packets),
    of_direction!("num_zwnd_probes", Unsigned, "zero-window probes", |d| d.probe_packets),
    of_direction!("zwnd_probe_bytes", Unsigned, "bytes in zero-window probes", |d| d.probe_bytes),
    of_direction!("urg_data_pkts", Unsigned, "packets with URG", |d| d.urgent_packets),
    of_direction!("urg_data_bytes", Unsigned, "bytes of urgent data", |d| d.urgent_bytes),
    Variable { name: "hostaddr", kind: Kind::Address, help: "address", value: |subject, client| Value::Address(address(subject, client).0) },
    Variable { name: "thruput", kind: Kind::Unsigned, help: "throughput (bytes/s)", value: |subject, client| {
        Value::Number(throughput(subject.connection, end(subject.connection, client).unique_bytes).into())
    } },

    of_direction!("keep_alives", Unsigned, "keep-alives", |d| d.keep_alives),
    of_direction!("spurious_segs", Unsigned, "retransmissions of acknowledged data", |d| d.spurious_retransmissions),
    of_direction!("fast_rexmit_segs", Unsigned, "retransmissions after three duplicate ACKs or a SACK", |d| d.fast_retransmissions),
    of_direction!("zwnd_episodes", Unsigned, "periods with a zero window", |d| d.zero_windows.count),
    of_direction!("stalls", Unsigned, "periods without packets while data was in flight", |d| d.stalls.count),
    of_direction!("max_owin", Unsigned, "most data in flight", |d| d.owin.max),
];
