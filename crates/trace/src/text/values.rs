//! The long report as separated values: a head, then a row for each connection.

use super::long::statistics;
use super::sheet::{Layout, Sheet};
use super::{About, LongOptions};
use crate::connection::Connection;
use core::fmt::{self, Write};

/// Columns of a whole connection.
const CONNECTION: [&str; 7] = [
    "conn_#",
    "host_a",
    "host_b",
    "port_a",
    "port_b",
    "first_packet",
    "last_packet",
];

/// Columns of each direction, in their order.
const BEFORE_OWIN: &[&str] = &[
    "total_packets",
    "resets_sent",
    "ack_pkts_sent",
    "pure_acks_sent",
    "sack_pkts_sent",
    "dsack_pkts_sent",
    "max_sack_blks/ack",
    "unique_bytes_sent",
    "actual_data_pkts",
    "actual_data_bytes",
    "rexmt_data_pkts",
    "rexmt_data_bytes",
    "zwnd_probe_pkts",
    "zwnd_probe_bytes",
    "outoforder_pkts",
    "pushed_data_pkts",
    "SYN/FIN_pkts_sent",
    "req_1323_ws/ts",
    "adv_wind_scale",
    "req_sack",
    "sacks_sent",
    "urgent_data_pkts",
    "urgent_data_bytes",
    "mss_requested",
    "max_segm_size",
    "min_segm_size",
    "avg_segm_size",
    "max_win_adv",
    "min_win_adv",
    "zero_win_adv",
    "avg_win_adv",
];

const OWIN: &[&str] = &["max_owin", "min_non-zero_owin", "avg_owin", "wavg_owin"];

const AFTER_OWIN: &[&str] = &[
    "initial_window_bytes",
    "initial_window_pkts",
    "ttl_stream_length",
    "missed_data",
    "truncated_data",
    "truncated_packets",
    "data_xmit_time",
    "idletime_max",
    "hardware_dups",
    "throughput",
];

const RTT: &[&str] = &[
    "RTT_samples",
    "RTT_min",
    "RTT_max",
    "RTT_avg",
    "RTT_stdev",
    "RTT_from_3WHS",
    "RTT_full_sz_smpls",
    "RTT_full_sz_min",
    "RTT_full_sz_max",
    "RTT_full_sz_avg",
    "RTT_full_sz_stdev",
    "post-loss_acks",
    "ambiguous_acks",
    "RTT_min_(last)",
    "RTT_max_(last)",
    "RTT_avg_(last)",
    "RTT_sdv_(last)",
    "segs_cum_acked",
    "duplicate_acks",
    "triple_dupacks",
    "max_#_retrans",
    "min_retr_time",
    "max_retr_time",
    "avg_retr_time",
    "sdv_retr_time",
];

/// Writes the head: the columns' names, each followed by the separator, and an empty line.
///
/// # Errors
/// `out` cannot be written.
pub fn values_header(out: &mut dyn Write, separator: &str, options: LongOptions) -> fmt::Result {
    for name in CONNECTION {
        write!(out, "{name}{separator}")?;
    }
    let owin = if options.owin { OWIN } else { &[] };
    let rtt = if options.rtt { RTT } else { &[] };
    for name in [BEFORE_OWIN, owin, AFTER_OWIN, rtt].into_iter().flatten() {
        // One of tcptrace's names contains a space, which scripts that look for the name need.
        let left = match *name {
            "RTT_full_sz_stdev" => "RTT full_sz_stdev",
            name => name,
        };
        write!(out, "{left}_a2b{separator}{name}_b2a{separator}")?;
    }
    out.write_str("\n\n")
}

/// Writes the row of a connection, its line end included.
///
/// Times are in seconds since 1970 with six decimals, unlike in tcptrace, which omits some.
///
/// # Errors
/// `out` cannot be written.
pub fn values(
    out: &mut dyn Write,
    connection: &Connection,
    about: &About<'_>,
    separator: &str,
    options: LongOptions,
) -> fmt::Result {
    write!(out, "{}{separator}", connection.number)?;
    let ends = [connection.a_end(), connection.b_end()];
    for (host, _) in ends {
        about.names.host(host, out)?;
        out.write_str(separator)?;
    }
    for (_, port) in ends {
        about.names.port(port, out)?;
        out.write_str(separator)?;
    }
    let [first, last] = [connection.first_time, connection.last_time].map(Seconds);
    write!(out, "{first} {separator} {last} {separator}")?;
    let mut sheet = Sheet::new(out, Layout::Separated(separator));
    statistics(&mut sheet, connection, about.end, options)?;
    out.write_char('\n')
}

/// A time in nanoseconds since 1970, as seconds.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.div_euclid(1000);
        let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        write!(f, "{seconds}.{rest:06}")
    }
}
