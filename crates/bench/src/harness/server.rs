//! The measured processes: this program as LNS, a peer, or a bare loop. Each is a process on the
//! server's core; its costs are read from the kernel's counters.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use base::Duration;
use lab::generator::{cpu_of, drops_of, resident_of, waits_of};
use serde_json::Value;

use super::Bench;
use super::run::Running;
use control::client::Client;
use control::request::{Do, Nothing};
use control::rows;

/// Longest time until a process listens.
const START_MAX: std::time::Duration = std::time::Duration::from_secs(15);

/// A subject of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LnsProgram {
    Headend,
    /// A loop of receive and send calls without a protocol.
    Bare,
    Xl2tpd,
    L2tpns,
}

impl LnsProgram {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LnsProgram::Headend => "headend",
            LnsProgram::Bare => "bare loop",
            LnsProgram::Xl2tpd => "xl2tpd",
            LnsProgram::L2tpns => "l2tpns",
        }
    }
}

/// A measured process.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// The kernel's counters of a process at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booked {
    pub(crate) cpu: Duration,
    /// Number of times it went to sleep.
    pub(crate) waits: u64,
    at: Instant,
}

/// The difference of the counters between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) cpu_us: f64,
    pub(crate) waits: f64,
    pub(crate) seconds: f64,
}

impl Spent {
    /// The same counters attributed to `span`, if the process was idle after it.
    pub(crate) fn over(self, span: Duration) -> Self {
        Self {
            seconds: span.as_secs_f64(),
            ..self
        }
    }

    /// Percent of one core.
    pub(crate) fn percent(&self) -> f64 {
        self.cpu_us / 1e4 / self.seconds.max(1e-9)
    }
}

impl Server {
    pub(crate) fn booked(&self) -> Result<Booked> {
        Ok(Booked {
            cpu: cpu_of(self.running.pid)?,
            waits: waits_of(self.running.pid)?,
            at: Instant::now(),
        })
    }

    pub(crate) fn spent_since(&self, before: &Booked) -> Result<Spent> {
        let after = self.booked()?;
        let cpu = after.cpu.as_nanos().saturating_sub(before.cpu.as_nanos());
        Ok(Spent {
            cpu_us: cpu as f64 / 1e3,
            waits: after.waits.saturating_sub(before.waits) as f64,
            seconds: after.at.duration_since(before.at).as_secs_f64(),
        })
    }

    pub(crate) fn resident(&self) -> Result<u64> {
        resident_of(self.running.pid).context("the server's memory")
    }

    /// Datagrams dropped because its buffers were full.
    pub(crate) fn drops(&self) -> u64 {
        let drops = self.addresses.iter();
        drops
            .filter_map(|&address| drops_of(self.running.pid, address).ok())
            .sum()
    }
}

/// Settings of our LNS that differ from the defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Number of listen addresses, from 127.0.0.1 up.
    pub(crate) listen: u8,
    /// Idle time in seconds after which it sends HELLO; 0 means never.
    pub(crate) hello_s: f64,
    pub(crate) receive_buffer_bytes: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            listen: 1,
            // Longer than any measurement, so no HELLO is due meanwhile.
            hello_s: 3600.0,
            receive_buffer_bytes: None,
        }
    }
}

impl Setup {
    fn text(&self, socket: &str) -> String {
        let listen: Vec<String> = (1..=self.listen)
            .map(|n| format!("\"127.0.0.{n}:0\""))
            .collect();
        let mut text = format!(
            "[control]\nsocket = {}\n[lns]\nlisten = [{}]\nhello_interval_s = {:?}\n\
             [log]\nto = \"stderr\"\n[limits]\ntunnels = 1000000\n",
            Value::from(socket),
            listen.join(", "),
            self.hello_s
        );
        if let Some(bytes) = self.receive_buffer_bytes {
            text += &format!("[event]\nreceive_buffer_bytes = {bytes}\n");
        }
        text
    }
}

/// Writes a file that other users cannot read.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file.write_all(text.as_bytes())?)
}

/// This program's daemon, with the configuration `text` in the run's file `name.toml`. The daemon ends with
/// this process.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn daemon(bench: &Bench, name: &str, text: &str) -> Result<Command> {
    let config = bench.directory.path(&format!("{name}.toml"));
    write_private(&config, text)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "--config"]).arg(&config);
    command.args(["--with-parent", &std::process::id().to_string()]);
    Ok(command)
}

/// This program as LNS.
pub(crate) struct Lns {
    pub(crate) server: Server,
    client: Client,
}

/// The loop's counters: system calls by name, and microseconds by kind of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoopCounters {
    pub(crate) calls: Vec<(String, f64)>,
    pub(crate) handlers_us: Vec<(String, f64)>,
}

impl LoopCounters {
    /// The increase since `earlier`, divided by `n`.
    pub(crate) fn per(&self, n: f64, earlier: &Self) -> Self {
        let each = |now: &[(String, f64)], then: &[(String, f64)]| {
            let before = |name: &str| {
                let found = then.iter().find(|(other, _)| other == name);
                found.map_or(0.0, |(_, value)| *value)
            };
            let rows = now.iter();
            rows.map(|(name, value)| (name.clone(), (value - before(name)) / n.max(1.0)))
                .collect()
        };
        Self {
            calls: each(&self.calls, &earlier.calls),
            handlers_us: each(&self.handlers_us, &earlier.handlers_us),
        }
    }
}

impl Lns {
    /// Starts it and waits until it answers on its control socket.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(bench: &Bench, setup: &Setup) -> Result<Self> {
        let socket = bench.directory.path("lns.sock");
        let text = setup.text(&socket.to_string_lossy());
        Self::start_with(bench, "lns", &text, |_| Ok(()))
    }

    /// As [`Lns::start`], with this configuration, whose control socket is the run's file
    /// `name.sock`. `place` may change where the process runs.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start_with(
        bench: &Bench,
        name: &str,
        text: &str,
        place: impl FnOnce(&mut Command) -> Result<()>,
    ) -> Result<Self> {
        let socket = bench.directory.path(&format!("{name}.sock"));
        let mut command = daemon(bench, name, text)?;
        place(&mut command)?;
        let running = bench.spawn(name, command)?;
        let started = Instant::now();
        let mut client = loop {
            match Client::connect(&socket) {
                Ok(client) => break client,
                Err(error) if started.elapsed() > START_MAX => return Err(error),
                Err(_) => running.check()?,
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        let stats: rows::Server = client.one(&Do::ServerStats(Nothing {}))?;
        let server = Server {
            running,
            addresses: stats.lns,
        };
        Ok(Self { server, client })
    }

    pub(crate) fn accounts(&mut self) -> Result<LoopCounters> {
        let mut accounts = LoopCounters::default();
        self.client.rows(&Do::ShowEventCpu(Nothing {}), |row| {
            let row: Value = serde_json::from_str(row)?;
            let name = row["name"].as_str().unwrap_or_default().to_owned();
            match row["schema"].as_str() {
                Some("event.syscall/1") => {
                    let calls = row["calls"].as_f64().unwrap_or(0.0);
                    accounts.calls.push((name, calls));
                }
                Some("event.handler/1") => {
                    let spent = row["total_us"].as_f64().unwrap_or(0.0);
                    accounts.handlers_us.push((name, spent));
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(accounts)
    }

    /// Number of tunnels that it counts as established.
    pub(crate) fn established(&mut self) -> Result<u64> {
        let stats: rows::Server = self.client.one(&Do::ServerStats(Nothing {}))?;
        Ok(stats.established)
    }

    /// Number of sessions that it counts as established.
    pub(crate) fn sessions(&mut self) -> Result<u64> {
        let stats: rows::Server = self.client.one(&Do::ServerStats(Nothing {}))?;
        Ok(stats.sessions_established)
    }

    /// The receive buffer that it got, as it reports.
    pub(crate) fn buffer(&self) -> String {
        let log = self.server.running.log();
        let found = log.lines().find_map(|line| {
            let at = line.find("receive buffer of ")?;
            let said = line[at..].split(" address=").next()?;
            Some(said.trim().to_owned())
        });
        found.unwrap_or_else(|| "not known".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_for_each_and_since_a_moment() {
        let calls = |n: f64| LoopCounters {
            calls: vec![("recvmmsg".into(), n)],
            handlers_us: Vec::new(),
        };
        assert_eq!(calls(30.0).per(10.0, &calls(10.0)), calls(2.0));
        assert_eq!(calls(30.0).per(10.0, &LoopCounters::default()), calls(3.0));
    }

    #[test]
    fn our_lns_s_configuration_is_one_that_the_daemon_takes() {
        let setup = Setup {
            listen: 2,
            hello_s: 0.1,
            receive_buffer_bytes: Some(212_992),
        };
        let text = setup.text("/run/bench/lns.sock");
        let settings = daemon::config::parse("lns.toml".as_ref(), text.as_bytes()).unwrap();
        assert_eq!(settings.event.receive_buffer_bytes, 212_992);
        assert_eq!(settings.lns.unwrap().listen.len(), 2);
    }
}
