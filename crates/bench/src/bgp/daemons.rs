//! The subjects of the BGP benchmark: our daemon, a bare loop, and other BGP daemons. Each is a
//! process on the server's core that accepts any peer from 127.0.0.0/8, accepts all routes and
//! advertises them to all peers.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::bare;
use super::commands::{Bgpd, bare_loop, drop_output};
use crate::harness::run::find_program;
use crate::harness::server::{Server, daemon};
use crate::harness::{Bench, Running};

/// Longest time a daemon may take until it listens.
const START_MAX: Duration = Duration::from_secs(15);

/// The AS number of the subject.
pub(crate) const ASN: u32 = 65_000;

/// Where Debian installs FRR's daemons.
const FRR_PLACE: &str = "/usr/lib/frr/bgpd";

/// A daemon to measure in the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    Frr,
    Bird,
    Gobgp,
}

/// A subject of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BgpProgram {
    Headend,
    /// A loop over TCP connections that implements no BGP.
    Bare(bare::Kind),
    /// FRRouting's bgpd: its path, and its version as it reports it.
    Frr(PathBuf, String),
    Bird,
    Gobgp,
}

impl fmt::Display for BgpProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BgpProgram::Headend => f.pad("headend"),
            BgpProgram::Bare(_) => f.pad("bare loop"),
            BgpProgram::Frr(_, version) => f.pad(&format!("FRR {version}")),
            BgpProgram::Bird => f.pad("BIRD"),
            BgpProgram::Gobgp => f.pad("GoBGP"),
        }
    }
}

/// All daemons named on the command line that are installed, and a note for each that is not.
pub(crate) fn others(peers: &[Peer], newer: Option<&Path>) -> (Vec<BgpProgram>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for peer in peers {
        let (program, package) = match peer {
            Peer::Frr => (frr(Path::new(FRR_PLACE)), "frr"),
            Peer::Bird => (find_program("bird").map(|_| BgpProgram::Bird), "bird2"),
            Peer::Gobgp => (find_program("gobgpd").map(|_| BgpProgram::Gobgp), "gobgpd"),
        };
        match program {
            Some(program) => found.push(program),
            None => missing.push(format!(
                "{package} is not installed: apt-get install {package}"
            )),
        }
    }
    if let Some(path) = newer {
        match frr(path) {
            Some(program) => found.push(program),
            None => missing.push(format!("{} is no bgpd that runs here", path.display())),
        }
    }
    (found, missing)
}

/// A bgpd, with the version it prints.
fn frr(path: &Path) -> Option<BgpProgram> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .split_ascii_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
    Some(BgpProgram::Frr(path.to_owned(), version.to_owned()))
}

/// Settings of a daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) hold_s: u16,
}

impl Setup {
    /// As in the published mesh: a KEEPALIVE every second, and a hold time of three.
    pub(crate) const TIGHT: Self = Self { hold_s: 3 };
    /// As RFC 4271 suggests.
    pub(crate) const USUAL: Self = Self { hold_s: 90 };

    fn keepalive_s(self) -> u16 {
        self.hold_s / 3
    }
}

impl BgpProgram {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(&self, bench: &Bench, setup: Setup) -> Result<Server> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let (name, command) = match self {
            BgpProgram::Headend => ("headend", ours(bench, setup, address)?),
            BgpProgram::Bare(kind) => ("bare", bare_loop(*kind, address)?),
            BgpProgram::Frr(path, _) => ("frr", bgpd(bench, path, setup, address)?),
            BgpProgram::Bird => ("bird", bird(bench, setup, address)?),
            BgpProgram::Gobgp => ("gobgp", gobgp(bench, setup, address)?),
        };
        self.await_listening(bench.spawn(name, command)?, address)
    }

    /// Waits until a process of this program listens.
    ///
    /// # Errors
    /// It ends, or does not listen in time.
    pub(crate) fn await_listening(
        &self,
        mut running: Running,
        address: SocketAddr,
    ) -> Result<Server> {
        drop_output(&mut running);
        let started = Instant::now();
        while !listens(running.pid, address) {
            running.check()?;
            if started.elapsed() > START_MAX {
                bail!("{self} does not listen: {}", running.log().trim());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Server {
            running,
            addresses: vec![address],
        })
    }
}

/// A port that is not in use.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Whether a socket in the process's network namespace listens there. A test by connecting would
/// create a peer.
pub(crate) fn listens(pid: u32, address: SocketAddr) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    has_listener(&table, address)
}

fn has_listener(table: &str, address: SocketAddr) -> bool {
    let SocketAddr::V4(address) = address else {
        return false;
    };
    let octets = u32::from_ne_bytes(address.ip().octets());
    let port = address.port();
    let wanted = [
        format!("{octets:08X}:{port:04X}"),
        format!("00000000:{port:04X}"),
    ];
    table.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let local = words.next().unwrap_or_default();
        wanted.iter().any(|w| w == local) && words.nth(1) == Some("0A")
    })
}

fn ours(bench: &Bench, setup: Setup, address: SocketAddr) -> Result<Command> {
    let socket = bench.directory.path("headend.sock");
    let text = format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\n[bgp]\nasn = {ASN}\nrouter_id = \"127.0.0.1\"\n\
         listen = [\"{address}\"]\n[[bgp.dynamic]]\nprefix = \"127.0.0.0/8\"\nremote_asn = \"any\"\n\
         hold_time_s = {}\nimport = \"accept\"\nexport = \"accept\"\n",
        Value::from(socket.to_string_lossy()),
        setup.hold_s
    );
    daemon(bench, "headend", &text)
}

/// FRR with its highest limit on dynamic neighbours.
fn bgpd(bench: &Bench, path: &Path, setup: Setup, address: SocketAddr) -> Result<Command> {
    let text = format!(
        "router bgp {ASN}\n bgp router-id 127.0.0.1\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n bgp listen limit 5000\n neighbor load peer-group\n \
         neighbor load remote-as external\n neighbor load passive\n neighbor load timers {} {}\n \
         neighbor load disable-connected-check\n neighbor load advertisement-interval 0\n \
         bgp listen range 127.0.0.0/8 peer-group load\n",
        setup.keepalive_s(),
        setup.hold_s
    );
    let bgpd = Bgpd {
        path,
        name: "bgpd",
        sockets: bench.directory.path(""),
        listen: address,
    };
    bgpd.command(bench, &text)
}

fn bird(bench: &Bench, setup: Setup, address: SocketAddr) -> Result<Command> {
    let config = bench.directory.path("bird.conf");
    let text = format!(
        "log stderr {{ warning, error, fatal, bug }};\nrouter id 127.0.0.1;\nprotocol device {{ }}\n\
         protocol bgp load {{\n local {} port {} as {ASN};\n neighbor range 127.0.0.0/8 external;\n \
         multihop;\n passive;\n hold time {};\n keepalive time {};\n \
         ipv4 {{ import all; export all; next hop self; }};\n}}\n",
        address.ip(),
        address.port(),
        setup.hold_s,
        setup.keepalive_s()
    );
    fs::write(&config, text)?;
    let mut command = Command::new(find_program("bird").context("bird")?);
    command.arg("-f").arg("-c").arg(&config);
    command.arg("-s").arg(bench.directory.path("bird.ctl"));
    Ok(command)
}

/// GoBGP's dynamic neighbours need one peer group for each AS.
fn gobgp(bench: &Bench, setup: Setup, address: SocketAddr) -> Result<Command> {
    let config = bench.directory.path("gobgp.toml");
    let mut text = format!(
        "[global.config]\nas = {ASN}\nrouter-id = \"127.0.0.1\"\nport = {}\n\
         local-address-list = [\"{}\"]\n",
        address.port(),
        address.ip()
    );
    let groups = [
        ("load", super::load::ASN, "127.0.0.0/8"),
        ("sink", super::relay::SINK_ASN, "127.2.0.2/32"),
    ];
    for (name, asn, prefix) in groups {
        text += &format!(
            "[[peer-groups]]\n[peer-groups.config]\npeer-group-name = \"{name}\"\npeer-as = {asn}\n\
             [peer-groups.timers.config]\nhold-time = {}\nkeepalive-interval = {}\n\
             [peer-groups.transport.config]\npassive-mode = true\n\
             [[peer-groups.afi-safis]]\n[peer-groups.afi-safis.config]\nafi-safi-name = \"ipv4-unicast\"\n\
             [[dynamic-neighbors]]\n[dynamic-neighbors.config]\nprefix = \"{prefix}\"\npeer-group = \"{name}\"\n",
            setup.hold_s,
            setup.keepalive_s()
        );
    }
    fs::write(&config, text)?;
    let socket = bench.directory.path("gobgp.sock");
    // An earlier process left the file, since it was killed.
    let _ = fs::remove_file(&socket);
    let mut command = Command::new(find_program("gobgpd").context("gobgpd")?);
    command.arg("-f").arg(&config);
    command.args(["-l", "error", "--pprof-disable", "--api-hosts"]);
    command.arg(format!("unix://{}", socket.display()));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_address_or_by_any() {
        let table = "  sl  local_address rem_address   st\n   \
                     0: 0100007F:06FE 00000000:0000 0A 00000000:00000000\n   \
                     1: 00000000:0019 00000000:0000 0A 00000000:00000000\n   \
                     2: 0100007F:0050 0100007F:9999 01 00000000:00000000\n";
        let at = |address: &str| has_listener(table, address.parse().unwrap());
        assert!(at("127.0.0.1:1790") && at("127.0.0.1:25"));
        assert!(!at("127.0.0.1:80") && !at("127.0.0.2:1790") && !at("[::1]:1790"));
    }
}
