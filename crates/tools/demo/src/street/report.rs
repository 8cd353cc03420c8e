//! The results as text and as JSON.

use std::io::{self, Write};

use anyhow::{Result, bail, ensure};
use plot::number::grouped;
use serde_json::{Value, json};

use super::asks::{Leases, Nat, Subscribers};
use super::change::Change;
use crate::ends::Measured;

/// A daemon's cost while the lines came up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) cpu_us: f64,
    pub(super) bytes: f64,
}

impl Side {
    /// The cost per line.
    pub(super) fn new(before: &Measured, after: &Measured, lines: u64) -> Self {
        let cpu = |at: &Measured| at.stats.user_us + at.stats.system_us;
        let grown = after.stats.rss_bytes.saturating_sub(before.stats.rss_bytes);
        let each = lines.max(1) as f64;
        Self {
            cpu_us: (cpu(after) - cpu(before)) as f64 / each,
            bytes: grown as f64 / each,
        }
    }
}

/// All results.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) lines: u16,
    /// Lines with an IPv4 address, an IPv6 address and a delegated prefix, as their hosts see it.
    pub(super) up: u16,
    /// Seconds from the first PADI until each of them had all.
    pub(super) course: Vec<f64>,
    /// The same of the access concentrator's lines, and of the LNS's.
    pub(super) courses: [Vec<f64>; 2],
    pub(super) ended: Vec<String>,
    pub(super) retransmissions: u64,
    pub(super) hosts_cpu_us: u64,
    pub(super) bng: Side,
    pub(super) lns: Side,
    /// What the access concentrator and the LNS list.
    pub(super) subscribers: [Subscribers; 2],
    pub(super) tunnels: u64,
    pub(super) sessions: u64,
    pub(super) nats: [Nat; 2],
    pub(super) leases: [Leases; 2],
    /// Pings sent and answered, by IPv4 and by IPv6.
    pub(super) answered: [(usize, usize); 2],
    pub(super) median_ms: [Option<f64>; 2],
    /// The change of the rate, or the reason why it was not measured.
    pub(super) change: std::result::Result<Change, String>,
    /// Subscribers that the daemons listed after the hosts had left.
    pub(super) left: u64,
}

impl Report {
    /// Lines that are handed over.
    pub(super) fn half(&self) -> u64 {
        u64::from(self.lines / 2)
    }

    pub(super) fn took_s(&self) -> f64 {
        self.course.last().copied().unwrap_or(0.0)
    }

    pub(super) fn per_second(&self) -> f64 {
        f64::from(self.up) / self.took_s().max(1e-9)
    }

    /// # Errors
    /// The first expectation that was not met.
    pub(super) fn check(&self) -> Result<()> {
        let (all, half) = (u64::from(self.lines), self.half());
        let [bng, lns] = self.subscribers;
        ensure!(
            self.up == self.lines,
            "{} of {all} lines have IPv4 and IPv6; of those that ended: {}",
            self.up,
            self.ended.first().map_or("none", String::as_str)
        );
        let listed = (bng.own, bng.handed_over, lns.own);
        ensure!(
            listed == (all - half, half, half),
            "the access concentrator lists {} lines of its own and {} handed over, the LNS {}: expected {}, {half} and {half}",
            bng.own,
            bng.handed_over,
            lns.own,
            all - half
        );
        for (version, (_, answered)) in ["IPv4", "IPv6"].iter().zip(self.answered) {
            let answered = answered as u64;
            ensure!(
                answered == all,
                "{answered} of {all} lines have {version} to the internet"
            );
        }
        let change = match &self.change {
            Ok(change) => change,
            Err(why) => bail!("no line was loaded: {why}"),
        };
        let rate = change.after.rate_down_bps;
        ensure!(
            rate == Some(u64::from(super::RATE_BPS / 2)),
            "the rate of the line is {rate:?} after the CoA-Request"
        );
        ensure!(
            change.acks == 1,
            "the daemon counts {} CoA-ACKs and not 1",
            change.acks
        );
        for stream in change.streams {
            let reordered = stream.reordered;
            ensure!(reordered == 0, "{reordered} datagrams arrived out of order");
        }
        ensure!(
            self.left == 0,
            "{} subscribers were left at the end",
            self.left
        );
        Ok(())
    }

    /// Prints one JSON object.
    pub(super) fn print_json(&self) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{}", self.json())
    }

    pub(super) fn json(&self) -> Value {
        let [bng, lns] = [0, 1].map(|at| self.daemon_json(at));
        let ping = |at: usize| {
            let (sent, answered) = self.answered[at];
            json!({"sent": sent, "answered": answered, "median_ms": self.median_ms[at].map(rounded)})
        };
        json!({
            "schema": "demo.street/1",
            "lines": self.lines,
            "dual_stack": self.up,
            "seconds": rounded(self.took_s()),
            "per_second": rounded(self.per_second()),
            "discovery_retransmissions": self.retransmissions,
            "ended_early": self.ended,
            "handed_over": self.subscribers[0].handed_over,
            "tunnels": self.tunnels,
            "sessions_in_tunnels": self.sessions,
            "hosts_cpu_us_per_line": rounded(self.hosts_cpu_us as f64 / f64::from(self.lines)),
            "bng": bng,
            "lns": lns,
            "pings": {"ipv4": ping(0), "ipv6": ping(1)},
            "change": self.change.as_ref().ok().map(change_json),
            "no_change_because": self.change.as_ref().err(),
            "listed_at_end": self.left,
        })
    }

    fn daemon_json(&self, at: usize) -> Value {
        let side = [self.bng, self.lns][at];
        let (nat, leases) = (&self.nats[at], self.leases[at]);
        json!({
            "subscribers": self.subscribers[at].own,
            "seconds": self.courses[at].last().map(|&last| rounded(last)),
            "cpu_us_per_line": rounded(side.cpu_us),
            "memory_bytes_per_line": rounded(side.bytes),
            "addresses_leased": leases.addresses,
            "link_prefixes_leased": leases.links,
            "prefixes_delegated": leases.delegated,
            "nat": {
                "external_addresses": nat.external_addresses,
                "blocks": nat.blocks_used,
                "subscribers": nat.subscribers,
                "mappings": nat.mappings,
                "packets_out": nat.outbound,
                "packets_in": nat.inbound,
                "packets_dropped": nat.dropped(),
            },
        })
    }

    /// Prints text.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.write(&mut out)
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let own = u64::from(self.lines) - self.half();
        writeln!(
            out,
            "{} PPPoE lines on one interface: {own} end at the access concentrator (BNG), {} at an LNS behind it",
            self.lines,
            self.half()
        )?;
        let (half_s, all_s) = (self.course.get(self.course.len() / 2), self.took_s());
        writeln!(
            out,
            "  dual-stack   {} in {all_s:.2} s from the first PADI, half of them in {:.2} s: {:.0} a second",
            self.up,
            half_s.unwrap_or(&0.0),
            self.per_second()
        )?;
        writeln!(
            out,
            "  handed over  {} in {} L2TP tunnel{}",
            self.subscribers[0].handed_over,
            self.tunnels,
            if self.tunnels == 1 { "" } else { "s" }
        )?;
        for (at, way) in [
            (0, "IPv4, through NAT"),
            (1, "IPv6, from the delegated prefix"),
        ] {
            let (sent, answered) = self.answered[at];
            let median_ms = self.median_ms[at].unwrap_or(f64::NAN);
            writeln!(
                out,
                "  pings        {answered} of {sent} lines reach the internet by {way}: median {median_ms:.1} ms"
            )?;
        }
        for ended in self.ended.iter().take(5) {
            writeln!(out, "  ended        {ended}")?;
        }
        self.write_daemons(out)?;
        match &self.change {
            Ok(change) => write_change(change, out),
            Err(why) => writeln!(out, "\nNo line was loaded: {why}"),
        }
    }

    fn write_daemons(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n{:<32}{:>12}{:>12}", "DAEMON", "BNG", "LNS")?;
        for (name, unit, cells) in self.daemon_rows() {
            let [bng, lns] = cells;
            writeln!(out, "{name:<32}{bng:>12}{lns:>12}  {unit}")?;
        }
        Ok(())
    }

    /// Name, unit and both values of each row of the daemons' table.
    pub(super) fn daemon_rows(&self) -> Vec<(&'static str, &'static str, [String; 2])> {
        let both = |of: &dyn Fn(usize) -> u64| [0, 1].map(|at| grouped(of(at) as f64, 0));
        let cost = |of: fn(&Side) -> f64| [&self.bng, &self.lns].map(|side| grouped(of(side), 0));
        vec![
            (
                "lines with addresses",
                "",
                both(&|at| self.subscribers[at].own),
            ),
            (
                "lines handed over",
                "",
                both(&|at| self.subscribers[at].handed_over),
            ),
            (
                "last line up after",
                "s",
                [0, 1].map(|at| grouped(self.courses[at].last().copied().unwrap_or(0.0), 2)),
            ),
            ("CPU per line", "us", cost(|side| side.cpu_us)),
            ("memory per line", "bytes", cost(|side| side.bytes)),
            (
                "IPv4 addresses leased",
                "",
                both(&|at| self.leases[at].addresses),
            ),
            (
                "link prefixes (/64) leased",
                "",
                both(&|at| self.leases[at].links),
            ),
            (
                "prefixes (/56) delegated",
                "",
                both(&|at| self.leases[at].delegated),
            ),
            (
                "NAT external addresses",
                "",
                both(&|at| self.nats[at].external_addresses),
            ),
            ("NAT subscribers", "", both(&|at| self.nats[at].subscribers)),
            ("NAT port blocks", "", both(&|at| self.nats[at].blocks_used)),
            ("NAT mappings", "", both(&|at| self.nats[at].mappings)),
            (
                "NAT packets dropped",
                "",
                both(&|at| self.nats[at].dropped()),
            ),
        ]
    }
}

fn change_json(change: &Change) -> Value {
    let queue = change.queue();
    let stream = |at: usize| {
        let stream = &change.streams[at];
        json!({
            "sent": stream.sent,
            "received": stream.received,
            "lost": stream.lost(),
            "reordered": stream.reordered,
            "duplicated": stream.duplicated,
        })
    };
    let samples = change.samples.iter();
    let samples: Vec<Value> = samples
        .map(|(at, bps)| json!([rounded(*at), bps.round()]))
        .collect();
    json!({
        "line": change.line,
        "load": change.program,
        "configured_before_bps": change.before.rate_down_bps,
        "configured_after_bps": change.after.rate_down_bps,
        "configured_after_by": change.after.rate_from,
        "sent_s": rounded(change.sent_s),
        "acknowledged_ms": rounded(change.ack_ms),
        "transmissions": change.transmissions,
        "coa_acks": change.acks,
        "measured_before_bps": change.rate_before_bps.round(),
        "measured_after_bps": change.rate_after_bps.round(),
        "segments_resent": change.resent,
        "queue_packets": {"passed": queue.passed, "waited": queue.waited, "dropped": queue.dropped},
        "datagrams": stream(0),
        "datagrams_at_lns": stream(1),
        "samples": samples,
    })
}

fn write_change(change: &Change, out: &mut impl Write) -> io::Result<()> {
    let mbit = |bps: f64| bps / 1e6;
    let configured = |bps: Option<u64>| mbit(bps.unwrap_or(0) as f64);
    writeln!(
        out,
        "\nA CoA-Request halves the rate of {} while {} downloads through NAT",
        change.line, change.program
    )?;
    writeln!(
        out,
        "  request      sent {:.2} s after the start, acknowledged in {:.2} ms",
        change.sent_s, change.ack_ms
    )?;
    writeln!(
        out,
        "  rate         {:.2} of {:.0} Mbit/s before, {:.2} of {:.0} Mbit/s after it (bytes of IP packets)",
        mbit(change.rate_before_bps),
        configured(change.before.rate_down_bps),
        mbit(change.rate_after_bps),
        configured(change.after.rate_down_bps)
    )?;
    let queue = change.queue();
    writeln!(
        out,
        "  queue        {} packets waited, {} passed at once, {} dropped to slow TCP down",
        queue.waited, queue.passed, queue.dropped
    )?;
    for (stream, whose) in change
        .streams
        .iter()
        .zip(["the same line", "a line at the LNS"])
    {
        writeln!(
            out,
            "  datagrams    {} of {} to the delegated prefix of {whose}: {} lost, {} reordered",
            stream.received,
            stream.sent,
            stream.lost(),
            stream.reordered
        )?;
    }
    Ok(())
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
