//! The processes that form a mesh, and the configuration of each.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use reactor::PollerKind;
use serde_json::Value;

use super::super::bare;
use super::super::commands::{Bgpd, bare_loop, drop_output};
use super::super::daemons::free_port;
use crate::harness::Bench;
use crate::harness::run::Running;
use crate::harness::server::daemon;

/// Limit of connections of one bare loop, because of the limit on descriptors of a process.
const BARE_MAX: u32 = 9_000;

/// The AS number of the first router.
const ASN: u32 = 64_512;

/// What the routers of a mesh are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// One process of our daemon for each router, with this poller.
    Headend(PollerKind),
    /// One process of ours that emulates all routers.
    Emulated,
    /// One bgpd for each router: its path and its version.
    Frr(PathBuf, String),
    /// Bare loops over the same number of connections.
    Bare,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Member::Headend(poller) => f.pad(&format!("headend, {poller}, a process each")),
            Member::Emulated => f.pad("headend emulate"),
            Member::Frr(_, version) => f.pad(&format!("FRR {version}, a process each")),
            Member::Bare => f.pad("bare loops"),
        }
    }
}

/// A running mesh.
pub(super) struct Mesh {
    pub(super) running: Vec<Running>,
    pub(super) pids: Vec<u32>,
    /// The ports on which its processes listen.
    pub(super) ports: Vec<u16>,
}

/// The address of router `n`.
fn address(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 5, 0, 1)) + n)
}

impl Mesh {
    /// Starts every process. The processes connect by themselves.
    ///
    /// # Errors
    /// One does not start.
    pub(super) fn start(bench: &Bench, member: &Member, routers: u32) -> Result<Self> {
        let mut mesh = Self {
            running: Vec::new(),
            pids: Vec::new(),
            ports: Vec::new(),
        };
        if *member == Member::Bare {
            mesh.bare(bench, routers)?;
        } else if *member == Member::Emulated {
            let port = free_port()?;
            mesh.ports.push(port);
            mesh.spawn(bench, "emulate", emulated(bench, routers, port)?)?;
        } else {
            let port = free_port()?;
            mesh.ports.push(port);
            for n in 0..routers {
                let place = Place { n, routers, port };
                let command = match member {
                    Member::Headend(poller) => ours(bench, place, *poller)?,
                    Member::Frr(path, _) => bgpd(bench, place, path)?,
                    Member::Bare | Member::Emulated => continue,
                };
                mesh.spawn(bench, &format!("router{n}"), command)?;
            }
        }
        Ok(mesh)
    }

    fn spawn(&mut self, bench: &Bench, name: &str, command: Command) -> Result<()> {
        let mut running = bench.directory.spawn(name, command)?;
        drop_output(&mut running);
        self.pids.push(running.pid);
        self.running.push(running);
        Ok(())
    }

    /// Pairs of bare loops; one of each pair connects to the other.
    fn bare(&mut self, bench: &Bench, routers: u32) -> Result<()> {
        let mut rest = routers * routers.saturating_sub(1) / 2;
        let loops = rest.div_ceil(BARE_MAX);
        for n in 0..loops {
            let count = rest.div_ceil(loops - n);
            rest -= count;
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
            self.ports.push(server.port());
            let kind = bare::Kind::Beat;
            self.spawn(bench, &format!("bare{n}"), bare_loop(kind, server)?)?;
            while !super::super::daemons::listens(self.pids[0], server) {
                self.check()?;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let mut command = bare_loop(kind, (address(n), 0).into())?;
            command.args(["--connect", &count.to_string(), &server.to_string()]);
            self.spawn(bench, &format!("bare{n}-client"), command)?;
        }
        Ok(())
    }
}

/// One router of a mesh.
#[derive(Clone, Copy)]
struct Place {
    n: u32,
    routers: u32,
    port: u16,
}

impl Place {
    /// All other routers: address, AS number, and whether they connect to this one.
    fn others(self) -> impl Iterator<Item = (Ipv4Addr, u32, bool)> {
        let others = (0..self.routers).filter(move |&other| other != self.n);
        others.map(move |other| (address(other), ASN + other, other < self.n))
    }
}

/// Longer than any measurement; the process is killed at the end.
const RUN_S: u32 = 3_600;

fn emulated(bench: &Bench, routers: u32, port: u16) -> Result<Command> {
    let text = format!(
        "clock = \"real\"\nrun_s = {RUN_S}\n[topology]\nkind = \"mesh\"\nrouters = {routers}\n\
         [routers]\nhold_time_s = 3\nkeepalive_s = 1\nport = {port}\nconnect_retry_s = 1\n\
         [links]\ntransport = \"tcp\"\n"
    );
    let scenario = bench.directory.path("mesh.toml");
    fs::write(&scenario, text)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("emulate").arg(&scenario);
    command.arg("--out").arg(bench.directory.path("mesh"));
    Ok(command)
}

fn ours(bench: &Bench, place: Place, poller: PollerKind) -> Result<Command> {
    let Place { n, port, .. } = place;
    let socket = bench.directory.path(&format!("router{n}.sock"));
    let mut text = format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\n[event]\npoller = \"{poller}\"\n\
         [bgp]\nasn = {}\nrouter_id = \"{}\"\nlisten = [\"{}:{port}\"]\nhold_time_s = 3\n\
         connect_retry_s = 1\nimport = \"accept\"\nexport = \"accept\"\n",
        Value::from(socket.to_string_lossy()),
        ASN + n,
        address(n),
        address(n),
    );
    for (other, asn, is_passive) in place.others() {
        text += &format!(
            "[[bgp.neighbor]]\naddress = \"{other}\"\nremote_asn = {asn}\nport = {port}\n\
             local_address = \"{}\"\npassive = {is_passive}\n",
            address(n)
        );
    }
    daemon(bench, &format!("router{n}"), &text)
}

fn bgpd(bench: &Bench, place: Place, path: &Path) -> Result<Command> {
    let Place { n, port, .. } = place;
    let mut text = format!(
        "router bgp {}\n bgp router-id {}\n no bgp ebgp-requires-policy\n",
        ASN + n,
        address(n)
    );
    for (other, asn, is_passive) in place.others() {
        text += &format!(
            " neighbor {other} remote-as {asn}\n neighbor {other} port {port}\n \
             neighbor {other} update-source {}\n neighbor {other} timers 1 3\n \
             neighbor {other} timers connect 1\n neighbor {other} disable-connected-check\n",
            address(n)
        );
        if is_passive {
            text += &format!(" neighbor {other} passive\n");
        }
    }
    let name = format!("router{n}");
    let bgpd = Bgpd {
        path,
        name: &name,
        sockets: bench.directory.path(&name),
        listen: (address(n), port).into(),
    };
    bgpd.command(bench, &text)
}
