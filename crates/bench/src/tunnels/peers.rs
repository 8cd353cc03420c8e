//! The other LNSs: Debian's xl2tpd and l2tpns, each with its default settings except for addresses.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use base::Duration;
use wire::l2tp::Version;

use super::setup;
use crate::harness::Bench;
use crate::harness::run::find_program;
use crate::harness::sandbox::CLUSTER_INTERFACE;
use crate::harness::server::{LnsProgram, Server};

/// Start-up limit; l2tpns waits for other members of its cluster before it serves.
const START_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// A peer that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Peer {
    Xl2tpd,
    L2tpns,
}

impl Peer {
    pub(super) fn program(self) -> LnsProgram {
        match self {
            Peer::Xl2tpd => LnsProgram::Xl2tpd,
            Peer::L2tpns => LnsProgram::L2tpns,
        }
    }

    /// Its name; the Debian package has the same.
    fn name(self) -> &'static str {
        self.program().name()
    }

    /// How to install it, if it is missing.
    pub(super) fn missing(self) -> Option<String> {
        let name = self.name();
        find_program(name)
            .is_none()
            .then(|| format!("{name} is not installed: apt-get install {name}"))
    }

    /// The sizes at which it is measured. Debian's l2tpns is limited to 500 tunnels; xl2tpd's cost
    /// per tunnel grows with their number.
    pub(super) fn sizes(self) -> &'static [u32] {
        match self {
            Peer::Xl2tpd => &[100, 490, 1_000, 10_000],
            Peer::L2tpns => &[100, 490],
        }
    }

    /// Starts it, and waits until a test tunnel to it has come up; that tunnel is then closed.
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub(super) fn start(self, bench: &Bench) -> Result<Server> {
        let command = match self {
            Peer::Xl2tpd => xl2tpd(bench)?,
            Peer::L2tpns => l2tpns(bench)?,
        };
        let mut running = bench.spawn(self.name(), command)?;
        // Its output is read and dropped, so that a full pipe does not stop it.
        if let Some(mut out) = running.stdout.take() {
            std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        }
        let server = Server {
            running,
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1701))],
        };
        let started = Instant::now();
        loop {
            server.running.check()?;
            if started.elapsed() > START_MAX {
                bail!("{} answers nobody: {}", self.name(), server.running.log());
            }
            let mut probe = setup::generator(&server, Version::V2, 1)?;
            if probe.open(1, 1, Duration::from_millis(500))?.up == 1 {
                probe.close(Duration::from_secs(2))?;
                return Ok(server);
            }
        }
    }
}

fn xl2tpd(bench: &Bench) -> Result<Command> {
    let file = |ending: &str| bench.directory.path(&format!("xl2tpd.{ending}"));
    fs::write(file("secrets"), "")?;
    let text = format!(
        "[global]\nlisten-addr = 127.0.0.1\nauth file = {}\n\
         [lns default]\nip range = 10.77.1.2-10.77.1.250\nlocal ip = 10.77.1.1\n\
         require authentication = no\n",
        file("secrets").display()
    );
    fs::write(file("conf"), text)?;
    let mut command = Command::new(find_program("xl2tpd").context("xl2tpd")?);
    command.arg("-D");
    for (option, ending) in [("-c", "conf"), ("-p", "pid"), ("-C", "control")] {
        command.arg(option).arg(file(ending));
    }
    Ok(command)
}

fn l2tpns(bench: &Bench) -> Result<Command> {
    let file = bench.directory.path("l2tpns.conf");
    let text = format!(
        "set log_file \"{}\"\nset pid_file \"{}\"\nset hostname \"l2tpns\"\n\
         set bind_address 127.0.0.1\nset cli_bind_address 127.0.0.1\nset peer_address 10.77.0.1\n\
         set primary_radius 127.0.0.1\nset radius_secret \"radius\"\n\
         set cluster_interface \"{CLUSTER_INTERFACE}\"\n",
        bench.directory.path("l2tpns.out").display(),
        bench.directory.path("l2tpns.pid").display(),
    );
    fs::write(&file, text)?;
    let mut command = Command::new(find_program("l2tpns").context("l2tpns")?);
    command.arg("-c").arg(file);
    Ok(command)
}
