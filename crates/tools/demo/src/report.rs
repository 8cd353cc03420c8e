//! The report of the demo, as text and as JSON.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use super::Figures;
use super::ends::Measured;
use super::traffic::{Row, SUBSCRIBERS};
use control::create::Outcome;
use control::rows::Server;

/// All results.
pub(super) struct Report {
    pub(super) version: u8,
    pub(super) wanted: u32,
    /// Whether LNS and LAC ran in namespaces of their own.
    pub(super) in_namespaces: bool,
    pub(super) outcome: Outcome,
    /// Seconds since the start, and tunnels that were up.
    pub(super) course: Vec<(f64, f64)>,
    pub(super) online: Option<Online>,
    pub(super) traffic: Vec<Row>,
    /// Why traffic was requested and not measured.
    pub(super) missing: Option<String>,
    pub(super) lns: Side,
    pub(super) lac: Side,
    pub(super) teardown: Duration,
    /// Whether everything was up on both sides.
    pub(super) up: bool,
    /// Whether nothing was left on either side after the teardown.
    pub(super) gone: bool,
    /// Rows that `show` still listed.
    pub(super) listed: u64,
}

/// Results for connected subscribers.
pub(super) struct Online {
    /// Number connected on both sides.
    pub(super) count: u64,
    /// From the first tunnel requested to the last address assigned.
    pub(super) took: Duration,
    /// LCP Echo-Requests of the LNS that were answered.
    pub(super) echo_replies: u64,
    /// Number still connected at the end.
    pub(super) left: u64,
}

impl Online {
    fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Costs of one daemon during the bring-up.
pub(super) struct Side {
    established: u64,
    sessions: u64,
    /// Processor time. The kernel divides so short a time into user and system time by ticks, too
    /// coarsely to show.
    cpu_us: f64,
    bytes: f64,
    /// Name, calls and microseconds of each kind of work, per tunnel.
    work: Vec<(String, f64, f64)>,
    /// Name and number of system calls, per tunnel.
    calls: Vec<(String, f64)>,
    held: u64,
}

impl Side {
    pub(super) fn new(before: &Measured, after: &Measured, left: &Server, tunnels: u32) -> Self {
        let each = f64::from(tunnels);
        let used = |of: fn(&Server) -> u64| (of(&after.stats) - of(&before.stats)) as f64 / each;
        let grown = after.stats.rss_bytes.saturating_sub(before.stats.rss_bytes);
        let mut side = Self {
            established: after.stats.established,
            sessions: after.stats.sessions_established,
            cpu_us: used(|stats| stats.user_us + stats.system_us),
            bytes: grown as f64 / each,
            work: Vec::new(),
            calls: Vec::new(),
            held: left.held,
        };
        for row in &after.handlers {
            let name = row["name"].as_str().unwrap_or_default();
            let earlier = before.handlers.iter().find(|earlier| {
                earlier["name"] == row["name"] && earlier["schema"] == row["schema"]
            });
            let of = |field: &str| {
                let at = |row: &Value| row[field].as_f64().unwrap_or(0.0);
                (at(row) - earlier.map_or(0.0, at)) / each
            };
            match row["schema"].as_str() {
                Some("event.handler/1") => {
                    side.work.push((name.into(), of("calls"), of("total_us")));
                }
                Some("event.syscall/1") => side.calls.push((name.into(), of("calls"))),
                _ => {}
            }
        }
        side
    }

    fn json(&self) -> Value {
        let work: Vec<Value> = self
            .work
            .iter()
            .map(|(name, calls, us)| json!({"name": name, "calls_per_tunnel": rounded(*calls), "us_per_tunnel": rounded(*us)}))
            .collect();
        let calls: serde_json::Map<String, Value> = self
            .calls
            .iter()
            .map(|(name, calls)| (name.clone(), rounded(*calls).into()))
            .collect();
        json!({
            "established": self.established,
            "sessions": self.sessions,
            "cpu_us_per_tunnel": rounded(self.cpu_us),
            "memory_bytes_per_tunnel": rounded(self.bytes),
            "event_loop": work,
            "system_calls_per_tunnel": calls,
            "held_after_teardown": self.held,
        })
    }
}

impl Report {
    /// # Errors
    /// The first expectation that was not met.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let all = u64::from(self.wanted);
        if !self.up {
            bail!("not all {all} were up on both sides");
        }
        if let Some(online) = &self.online {
            if online.echo_replies < all {
                let replies = online.echo_replies;
                bail!("only {replies} of {all} answered an Echo-Request");
            }
            if online.left < all {
                let left = online.left;
                bail!("only {left} of {all} were connected at the end");
            }
        }
        if !self.gone || self.listed > 0 {
            let listed = self.listed;
            bail!("{listed} tunnels, sessions or subscribers were left after the teardown");
        }
        Ok(())
    }

    /// The results for other programs; `None` without subscribers.
    pub(super) fn figures(&self) -> Option<Figures> {
        let online = self.online.as_ref()?;
        let tcp = self.traffic.iter().filter(|row| row.protocol == "TCP");
        Some(Figures {
            subscribers: online.count,
            took: online.took,
            course: self.course.clone(),
            lns_cpu_us: self.lns.cpu_us,
            lns_bytes: self.lns.bytes,
            tcp_gbit_per_s: tcp.map(Row::gbit_per_s).collect(),
            missing: self.missing.clone(),
        })
    }

    /// Prints one JSON object.
    pub(super) fn print_json(&self) -> io::Result<()> {
        let online = self.online.as_ref().map(|online| {
            json!({
                "online": online.count,
                "seconds": rounded(online.took.as_secs_f64()),
                "per_second": rounded(online.rate()),
                "echo_replies": online.echo_replies,
                "online_at_end": online.left,
            })
        });
        let traffic: Vec<Value> = self.traffic.iter().map(row_json).collect();
        let object = json!({
            "schema": "demo/1",
            "version": self.version,
            "wanted": self.wanted,
            "namespaces": self.in_namespaces,
            "up": self.outcome.done,
            "failed": self.outcome.failed,
            "seconds": rounded(self.outcome.took.as_secs_f64()),
            "per_second": rounded(self.outcome.rate()),
            "ms_p50": rounded(self.outcome.quantile_ms(0.5)),
            "ms_p99": rounded(self.outcome.quantile_ms(0.99)),
            "ms_max": rounded(self.outcome.quantile_ms(1.0)),
            "subscribers": online,
            "traffic": traffic,
            "no_traffic_because": self.missing,
            "lns": self.lns.json(),
            "lac": self.lac.json(),
            "teardown_seconds": rounded(self.teardown.as_secs_f64()),
            "listed_after_teardown": self.listed,
        });
        writeln!(io::stdout().lock(), "{object}")
    }

    /// Prints text.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let outcome = &self.outcome;
        let within = if self.online.is_some() {
            "a session and a subscriber"
        } else {
            "a session"
        };
        let place = if self.in_namespaces {
            "between two network namespaces"
        } else {
            "over the loopback interface"
        };
        writeln!(
            out,
            "{} L2TPv{} tunnels with {within} each, LAC to LNS {place}",
            self.wanted, self.version
        )?;
        writeln!(
            out,
            "  tunnels    {} in {:.3} s: {:.0} a second (10,000 took 24 minutes in 2013's benchmark)",
            outcome.done,
            outcome.took.as_secs_f64(),
            outcome.rate()
        )?;
        writeln!(
            out,
            "  each       {:.1} ms in the middle, {:.1} ms for 99 %, {:.1} ms at most",
            outcome.quantile_ms(0.5),
            outcome.quantile_ms(0.99),
            outcome.quantile_ms(1.0)
        )?;
        for (reason, count) in &outcome.reasons {
            writeln!(out, "  failed     {count}: {reason}")?;
        }
        if let Some(online) = &self.online {
            writeln!(
                out,
                "  connected  {} in {:.3} s: {:.0} a second from nothing to an address (LCP, CHAP, IPCP; users file, pool)",
                online.count,
                online.took.as_secs_f64(),
                online.rate()
            )?;
            writeln!(
                out,
                "  echo       {} LCP Echo-Requests of the LNS answered",
                online.echo_replies
            )?;
        }
        writeln!(
            out,
            "  teardown   {:.3} s; {} listed after it; held for late duplicates: {} at the LNS, {} at the LAC",
            self.teardown.as_secs_f64(),
            self.listed,
            self.lns.held,
            self.lac.held
        )?;
        if let Some(missing) = &self.missing {
            writeln!(out, "  traffic    none: {missing}")?;
        }
        self.print_traffic(&mut out)?;
        self.print_sides(&mut out)
    }

    /// Throughput of the subscribers' traffic, and its cost to the LNS.
    fn print_traffic(&self, out: &mut impl Write) -> io::Result<()> {
        if self.traffic.is_empty() {
            return Ok(());
        }
        let subscribers = SUBSCRIBERS.min(self.wanted as usize);
        writeln!(
            out,
            "\nTRAFFIC of {subscribers:<13}{:>10}{:>12}{:>16}{:>18}",
            "Gbit/s", "packets/s", "LNS us/packet", "Gbit/LNS CPU-s"
        )?;
        for row in &self.traffic {
            let what = match row.protocol {
                "TCP" => format!("TCP {}", row.way.name()),
                _ => format!("UDP {}, 100 octets", row.way.name()),
            };
            let lost = match row.lost {
                0 => String::new(),
                lost => format!("  {lost} lost"),
            };
            writeln!(
                out,
                "{what:<24}{:>10.2}{:>12.0}{:>16.2}{:>18.2}{lost}",
                row.gbit_per_s(),
                row.packets_per_s(),
                row.lns_us_per_packet(),
                row.gbit_per_lns_cpu_s()
            )?;
        }
        Ok(())
    }

    /// Costs of each side, and how its loop's time was spent.
    fn print_sides(&self, out: &mut impl Write) -> io::Result<()> {
        let sides = [&self.lns, &self.lac];
        writeln!(out, "\n{:<24}{:>10}{:>10}", "PER TUNNEL", "LNS", "LAC")?;
        let mut line = |name: &str, of: &dyn Fn(&Side) -> f64, unit: &str| {
            let [lns, lac] = sides.map(of);
            writeln!(out, "{name:<24}{lns:>10.2}{lac:>10.2}  {unit}")
        };
        line("CPU", &|side| side.cpu_us, "us")?;
        line("memory", &|side| side.bytes, "bytes")?;
        line(
            "event loop (wall clock)",
            &|side| side.work.iter().map(|work| work.2).sum(),
            "us",
        )?;
        for (name, ..) in &self.lns.work {
            let of = |side: &Side| side.work.iter().find(|w| w.0 == *name).map_or(0.0, |w| w.2);
            line(&format!("  {name}"), &of, "us")?;
        }
        line(
            "system calls",
            &|side| side.calls.iter().map(|call| call.1).sum(),
            "",
        )?;
        for name in self.call_names() {
            let of = |side: &Side| {
                side.calls
                    .iter()
                    .find(|c| c.0 == *name)
                    .map_or(0.0, |c| c.1)
            };
            line(&format!("  {name}"), &of, "")?;
        }
        Ok(())
    }

    /// The system calls that either side made.
    fn call_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, count) in self.lns.calls.iter().chain(&self.lac.calls) {
            if *count > 0.0 && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

fn row_json(row: &Row) -> Value {
    json!({
        "protocol": row.protocol,
        "way": row.way.name(),
        "seconds": rounded(row.seconds),
        "payload_octets": row.octets,
        "gbit_per_s": rounded(row.gbit_per_s()),
        "packets_per_s": rounded(row.packets_per_s()),
        "lost": row.lost,
        "lns_us_per_packet": rounded(row.lns_us_per_packet()),
        "gbit_per_lns_cpu_second": rounded(row.gbit_per_lns_cpu_s()),
        "lns_cpu_us": row.lns_cpu_us,
        "lac_cpu_us": row.lac_cpu_us,
    })
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
