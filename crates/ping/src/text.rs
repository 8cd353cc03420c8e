//! Results as text: the lines that ping of iputils prints, and CSV.
//!
//! ping's formats are reproduced byte for byte, since scripts read them: `time=0.045 ms` has the digits that ping
//! prints for a time of that size, loss is printed as C's `%g`, and times are rounded down to microseconds.

use core::fmt::{self, Display};
use std::io::{self, Write};
use std::net::IpAddr;

use crate::experiment::Accepted;
use crate::outcome::{StreamOutcome, Summary};
use crate::plan::{Protocol, StreamPlan};
use crate::sample::{State, flag};
use crate::statistics::Statistics;

/// The first line of a stream: `PING localhost (127.0.0.1) 56(84) bytes of data.`
#[must_use]
pub fn opening(plan: &StreamPlan) -> String {
    let StreamPlan { host, size, .. } = plan;
    let address = shown(plan);
    let what = match plan.protocol {
        Protocol::Icmp => String::new(),
        Protocol::Udp { port } => format!(" UDP port {port},"),
    };
    match plan.address {
        IpAddr::V4(_) => {
            let whole = u32::from(*size) + 28;
            format!("PING {host} ({address}){what} {size}({whole}) bytes of data.")
        }
        IpAddr::V6(_) => format!("PING {host}({address}){what} {size} data bytes"),
    }
}

/// A stream's address, with the interface of a link-local address if the user typed it (RFC 4007 11).
#[must_use]
pub fn shown(plan: &StreamPlan) -> String {
    match plan.host.split_once('%') {
        Some((_, zone)) => format!("{}%{zone}", plan.address),
        None => plan.address.to_string(),
    }
}

/// Fields of a reply that [`reply`] prints and [`Accepted`] lacks.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Bytes of ICMP message or UDP payload.
    pub octets: usize,
    /// The sender, as it is to be printed.
    pub from: &'a str,
    /// TTL or hop limit; 0 if unknown.
    pub ttl: u8,
}

/// The line of a reply: `64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.045 ms`.
#[must_use]
pub fn reply(plan: &StreamPlan, seen: Seen<'_>, accepted: &Accepted) -> String {
    let Seen { octets, from, ttl } = seen;
    let (name, sequence) = match plan.protocol {
        Protocol::Icmp => ("icmp_seq", accepted.sequence & 0xffff),
        Protocol::Udp { .. } => ("udp_seq", accepted.sequence),
    };
    let time = Time(accepted.rtt.as_nanos());
    let mut line = format!("{octets} bytes from {from}: {name}={sequence} ttl={ttl} time={time}");
    if accepted.duplicate {
        line.push_str(" (DUP!)");
    }
    if accepted.late {
        line.push_str(" (LATE!)");
    }
    line
}

/// The last lines of a stream, from `--- localhost ping statistics ---` on.
#[must_use]
pub fn closing(name: &str, summary: &Summary) -> String {
    let Summary {
        transmitted,
        received,
        duplicates,
        errors,
        ..
    } = summary;
    let mut text = format!(
        "--- {name} ping statistics ---\n{transmitted} packets transmitted, {received} received"
    );
    for (count, what) in [(duplicates, "duplicates"), (errors, "errors")] {
        if *count > 0 {
            text.push_str(&format!(", +{count} {what}"));
        }
    }
    if *transmitted > 0 {
        let loss = (transmitted - received.min(transmitted)) as f64 * 100.0 / *transmitted as f64;
        let loss = General(f64::from(loss as f32));
        let time = summary.span_ns.saturating_add(500_000) / 1_000_000;
        text.push_str(&format!(", {loss}% packet loss, time {time}ms"));
    }
    text.push('\n');
    if let Some(rtt) = summary.rtt {
        let [min, avg, max, mdev] = [rtt.min_us, rtt.avg_us, rtt.max_us, rtt.mdev_us].map(Micros);
        text.push_str(&format!(
            "rtt min/avg/max/mdev = {min}/{avg}/{max}/{mdev} ms"
        ));
    }
    if summary.pipe > 1 {
        let comma = if summary.rtt.is_some() { ", " } else { "" };
        text.push_str(&format!("{comma}pipe {}", summary.pipe));
    }
    text.push('\n');
    text
}

/// The state of a stream, as ping prints it on SIGQUIT: `3/4 packets, 25% loss, min/avg/ewma/max = ...`.
#[must_use]
pub fn status(statistics: &Statistics) -> String {
    let (sent, received) = (statistics.transmitted, statistics.received);
    let lost = u128::from(sent.saturating_sub(received));
    let loss = lost * 100 / u128::from(sent.max(1));
    let mut text = format!("{received}/{sent} packets, {loss}% loss");
    if let Some(rtt) = statistics.round_trips() {
        let figures = [rtt.min_us, rtt.avg_us, statistics.ewma_us(), rtt.max_us];
        let [min, avg, ewma, max] = figures.map(Micros);
        text.push_str(&format!(", min/avg/ewma/max = {min}/{avg}/{ewma}/{max} ms"));
    }
    text
}

/// Microseconds as milliseconds with three digits.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// Nanoseconds as milliseconds with three digits, cut to whole microseconds as ping cuts the minimum, the mean and the
/// maximum. Figures that are printed beside each other must follow one rule: otherwise the 99th percentile may be printed
/// as larger than the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millis(pub u64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Micros(self.0 / 1_000).fmt(f)
    }
}

/// A round trip in nanoseconds, as ping prints one: with three significant digits and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0 / 1_000;
        match us {
            99_950.. => write!(f, "{} ms", (us + 500) / 1_000),
            9_995.. => write!(f, "{}.{} ms", (us + 50) / 1_000, (us + 50) % 1_000 / 100),
            1_000.. => write!(f, "{}.{:02} ms", (us + 5) / 1_000, (us + 5) % 1_000 / 10),
            _ => write!(f, "{} ms", Micros(us)),
        }
    }
}

/// A number as C's `%g` prints it.
struct General(f64);

impl Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scientific = format!("{:.5e}", self.0);
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if (-4..6).contains(&exponent) {
            let fixed = format!("{:.*}", (5 - exponent) as usize, self.0);
            return f.write_str(without_zeros(&fixed));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let digits = without_zeros(digits);
        write!(f, "{digits}e{sign}{:02}", exponent.abs())
    }
}

fn without_zeros(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

/// The columns of [`csv`].
pub const CSV_HEAD: &str = "stream,sequence,due_ns,sent_ns,late_ns,rtt_ns,ttl,tos,state,duplicated,reordered,\
                            kernel_stamp,up_ns,down_ns,responder_count";

/// Writes one row for each packet whose sample is stored, after `prefix`. Sending times are nanoseconds since the
/// start; unknown values are empty.
///
/// # Errors
/// The error of `out`.
pub fn csv<W: Write>(stream: &StreamOutcome, prefix: &str, out: &mut W) -> io::Result<()> {
    let name = Quoted(&stream.plan.name).to_string();
    for row in stream.rows() {
        let sample = row.sample;
        let state = match sample.state() {
            State::Waiting => "waiting",
            State::Replied => "replied",
            State::Late => "late",
            State::Lost => "lost",
            State::Failed => "failed",
        };
        write!(
            out,
            "{prefix}{name},{},{},{},{},",
            row.sequence,
            row.due_ns,
            row.sent_ns,
            row.late_ns()
        )?;
        match sample.rtt() {
            Some(rtt) => write!(out, "{},{},{},", rtt.as_nanos(), sample.ttl(), sample.tos())?,
            None => out.write_all(b",,,")?,
        }
        let has = |bit| u8::from(sample.flags() & bit != 0);
        let stamped = 1 - has(flag::UNSTAMPED);
        let (duplicated, reordered) = (has(flag::DUPLICATED), has(flag::REORDERED));
        write!(out, "{state},{duplicated},{reordered},{stamped},")?;
        match row.one_way.zip(sample.rtt()) {
            Some((way, rtt)) => {
                writeln!(out, "{},{},{}", way.up_ns, way.down_ns(rtt), way.count)?;
            }
            None => out.write_all(b",,\n")?,
        }
    }
    Ok(())
}

/// A text as a field of CSV (RFC 4180 2).
#[derive(Debug, Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains([',', '"', '\n', '\r']) {
            true => write!(f, "\"{}\"", self.0.replace('"', "\"\"")),
            false => f.write_str(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::RoundTrips;
    use base::Duration;

    fn plan(address: &str, protocol: Protocol) -> StreamPlan {
        StreamPlan {
            name: "peer".into(),
            host: "localhost".into(),
            address: address.parse().unwrap(),
            protocol,
            tos: 0,
            size: 56,
            interval: Duration::from_secs(1),
            offset: Duration::ZERO,
            count: None,
        }
    }

    #[test]
    fn times_have_the_digits_that_ping_gives_them() {
        // At and around the sizes where ping changes its format.
        for (us, text) in [
            (45, "0.045 ms"),
            (999, "0.999 ms"),
            (1_000, "1.00 ms"),
            (1_234, "1.23 ms"),
            (9_994, "9.99 ms"),
            (9_995, "10.0 ms"),
            (20_149, "20.1 ms"),
            (99_949, "99.9 ms"),
            (99_950, "100 ms"),
            (1_500_500, "1501 ms"),
        ] {
            assert_eq!(Time(us * 1_000 + 999).to_string(), text);
        }
    }

    #[test]
    fn shares_are_printed_as_c_does() {
        for (number, text) in [
            (0.0, "0"),
            (100.0, "100"),
            (50.0, "50"),
            (100.0 / 3.0, "33.3333"),
            (200.0 / 3.0, "66.6667"),
            (0.001, "0.001"),
            (0.00001, "1e-05"),
            (0.000_012_345_678, "1.23457e-05"),
            (1e6, "1e+06"),
        ] {
            assert_eq!(General(number).to_string(), text);
        }
    }

    #[test]
    fn lines_are_those_of_ping() {
        let four = plan("127.0.0.1", Protocol::Icmp);
        assert_eq!(
            opening(&four),
            "PING localhost (127.0.0.1) 56(84) bytes of data."
        );
        let six = plan("::1", Protocol::Icmp);
        assert_eq!(opening(&six), "PING localhost(::1) 56 data bytes");
        let local = StreamPlan {
            host: "fe80::1%eth0".into(),
            ..plan("fe80::1", Protocol::Icmp)
        };
        let expected = "PING fe80::1%eth0(fe80::1%eth0) 56 data bytes";
        assert_eq!(opening(&local), expected);
        let accepted = Accepted {
            sequence: 65_537,
            rtt: Duration::from_micros(45),
            late: false,
            duplicate: true,
            reordered: false,
        };
        let seen = Seen {
            octets: 64,
            from: "127.0.0.1",
            ttl: 63,
        };
        assert_eq!(
            reply(&four, seen, &accepted),
            "64 bytes from 127.0.0.1: icmp_seq=1 ttl=63 time=0.045 ms (DUP!)"
        );
        let udp = plan("127.0.0.1", Protocol::Udp { port: 9 });
        assert!(reply(&udp, seen, &accepted).contains(": udp_seq=65537 "));
    }

    #[test]
    fn how_a_stream_stands_is_said_as_ping_says_it() {
        let mut statistics = Statistics::default();
        statistics.transmitted = 4;
        assert_eq!(status(&statistics), "0/4 packets, 100% loss");
        // ping's moving average: eight times the first, then less an eighth of itself, plus the next.
        for us in [800, 1_600, 2_400] {
            statistics.add_rtt(Duration::from_micros(us), false);
        }
        let expected = "3/4 packets, 25% loss, min/avg/ewma/max = 0.800/1.600/1.087/2.400 ms";
        assert_eq!(status(&statistics), expected);
    }

    fn summary(transmitted: u64, received: u64) -> Summary {
        Summary {
            transmitted,
            received,
            late: 0,
            lost: transmitted - received,
            failed: 0,
            waiting: 0,
            duplicates: 0,
            reordered: 0,
            skipped: 0,
            errors: 0,
            pipe: 1,
            span_ns: 2_004_500_000,
            rtt: (received > 0).then_some(RoundTrips {
                min_us: 14,
                avg_us: 22,
                max_us: 12_030,
                mdev_us: 8,
            }),
            rtt_percentiles: None,
            lateness: None,
            directions: None,
        }
    }

    #[test]
    fn the_last_lines_are_those_of_ping() {
        assert_eq!(
            closing("localhost", &summary(3, 2)),
            "--- localhost ping statistics ---\n\
             3 packets transmitted, 2 received, 33.3333% packet loss, time 2005ms\n\
             rtt min/avg/max/mdev = 0.014/0.022/12.030/0.008 ms\n"
        );
        let silent = Summary {
            errors: 3,
            ..summary(3, 0)
        };
        assert_eq!(
            closing("h", &silent),
            "--- h ping statistics ---\n\
             3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2005ms\n\n"
        );
        let crowded = Summary {
            pipe: 3,
            duplicates: 1,
            ..summary(2, 2)
        };
        let text = closing("h", &crowded);
        assert!(text.contains("2 received, +1 duplicates, 0% packet loss"));
        assert!(text.ends_with("/0.008 ms, pipe 3\n"), "{text}");
    }
}
