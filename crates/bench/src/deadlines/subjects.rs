//! Starts and configures the measured daemons.
//!
//! Each daemon accepts idle peers from 127.1.0.0/16, and sends them no routes. Each daemon accepts the feeder and the
//! joiners from 127.2.0.0/16, and sends them all routes. Start reading at [`start`].

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use control::client::Client;
use control::request::{BgpPeer, BgpVerb, Do, Nothing};
use serde_json::Value;

use crate::bgp::commands::Bgpd;
use crate::bgp::daemons::{BgpProgram, free_port};
use crate::harness::Bench;
use crate::harness::run::find_program;
use crate::harness::server::{Server, daemon, write_private};
use crate::subscribers::lns::users;

/// The AS number of the subject.
const ASN: u32 = 65_000;

/// How long a handler of ours may take before it is listed.
const OVERRUN_MS: u32 = 5;

/// A daemon that runs.
pub(super) struct Subject {
    pub(super) server: Server,
    /// Our daemon's control socket and configuration, and the address of its LNS.
    pub(super) ours: Option<Ours>,
}

/// What only our daemon has.
pub(super) struct Ours {
    pub(super) socket: PathBuf,
    config: PathBuf,
    text: String,
    pub(super) lns: SocketAddr,
}

/// A call of one of our handlers that took long.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrun {
    pub(super) handler: String,
    pub(super) wall_ms: f64,
    pub(super) cpu_ms: f64,
    pub(super) s_ago: f64,
}

impl Ours {
    /// Asks a peer for all its routes again.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn refresh(&self, peer: &str) -> Result<()> {
        let what = Do::BgpPeer(BgpPeer {
            peer: peer.to_owned(),
            verb: BgpVerb::RefreshIn,
            text: String::new(),
            router: None,
        });
        Client::connect(&self.socket)?.call(&what).map(drop)
    }

    /// The handlers' long calls, newest first.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub(super) fn overruns(&self) -> Result<Vec<Overrun>> {
        let mut all = Vec::new();
        let mut client = Client::connect(&self.socket)?;
        client.rows(&Do::ShowEventCpu(Nothing {}), |row| {
            let row: Value = serde_json::from_str(row)?;
            if row["schema"] == "event.overrun/1" {
                let number = |key: &str| row[key].as_f64().unwrap_or(0.0);
                all.push(Overrun {
                    handler: row["handler"].as_str().unwrap_or_default().into(),
                    wall_ms: number("wall_ms"),
                    cpu_ms: number("cpu_ms"),
                    s_ago: number("s_ago"),
                });
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Writes another import policy for the feeder into the configuration.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn change_policy(&self, local_pref: u32) -> Result<()> {
        let text = self.text.replace(
            "set_local_pref = 200",
            &format!("set_local_pref = {local_pref}"),
        );
        write_private(&self.config, &text)
    }
}

/// Starts a daemon, and waits until it listens for BGP peers.
///
/// # Errors
/// It does not start, or is not one that can be measured here.
pub(super) fn start(bench: &Bench, program: &BgpProgram, subscribers: u32) -> Result<Subject> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let (name, command, ours) = match program {
        BgpProgram::Headend => {
            let (command, ours) = headend(bench, address, subscribers)?;
            ("headend", command, Some(ours))
        }
        BgpProgram::Bird => ("bird", bird(bench, address)?, None),
        BgpProgram::Frr(path, _) => {
            let bgpd = Bgpd {
                path,
                name: "bgpd",
                sockets: bench.directory.path(""),
                listen: address,
            };
            ("frr", bgpd.command(bench, &frr())?, None)
        }
        BgpProgram::Bare(_) | BgpProgram::Gobgp => bail!("{program} is not measured here"),
    };
    let server = program.await_listening(bench.spawn(name, command)?, address)?;
    Ok(Subject { server, ours })
}

fn headend(bench: &Bench, address: SocketAddr, subscribers: u32) -> Result<(Command, Ours)> {
    write_private(&bench.directory.path("users.toml"), &users(subscribers))?;
    let socket = bench.directory.path("headend.sock");
    let lns = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let text = format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\n[event]\noverrun_ms = {OVERRUN_MS}\n\
         [lns]\nlisten = [\"{lns}\"]\nhello_interval_s = 1\n\
         [ppp]\naddress = \"10.255.255.254\"\nauthenticate = [\"chap\"]\necho_interval_s = 1\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/13\"]\n[users]\nfile = \"users.toml\"\n\
         [bgp]\nasn = {ASN}\nrouter_id = \"127.0.0.1\"\nlisten = [\"{address}\"]\n\
         [[bgp.dynamic]]\nprefix = \"127.1.0.0/16\"\nremote_asn = \"any\"\nhold_time_s = 3\n\
         import = \"accept\"\nexport = \"deny\"\n\
         [[bgp.dynamic]]\nprefix = \"127.2.0.0/16\"\nremote_asn = \"any\"\nhold_time_s = 3\n\
         import = \"preferred\"\nexport = \"accept\"\n\
         [[bgp.policy]]\nname = \"preferred\"\n[[bgp.policy.term]]\nset_local_pref = 200\nthen = \"accept\"\n",
        Value::from(socket.to_string_lossy()),
    );
    let command = daemon(bench, "headend", &text)?;
    let ours = Ours {
        socket,
        config: bench.directory.path("headend.toml"),
        text,
        lns,
    };
    Ok((command, ours))
}

fn bird(bench: &Bench, address: SocketAddr) -> Result<Command> {
    let config = bench.directory.path("bird.conf");
    let mut text =
        "log stderr { warning, error, fatal, bug };\nrouter id 127.0.0.1;\nprotocol device { }\n"
            .to_owned();
    for (name, range, export) in [
        ("quiet", "127.1.0.0/16", "none"),
        ("load", "127.2.0.0/16", "all"),
    ] {
        text += &format!(
            "protocol bgp {name} {{\n local {} port {} as {ASN};\n neighbor range {range} external;\n \
             multihop;\n passive;\n hold time 3;\n keepalive time 1;\n \
             ipv4 {{ import all; export {export}; next hop self; }};\n}}\n",
            address.ip(),
            address.port(),
        );
    }
    fs::write(&config, text)?;
    let mut command = Command::new(find_program("bird").context("bird")?);
    command.arg("-f").arg("-c").arg(&config);
    command.arg("-s").arg(bench.directory.path("bird.ctl"));
    Ok(command)
}

fn frr() -> String {
    let mut text = format!(
        "router bgp {ASN}\n bgp router-id 127.0.0.1\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n bgp listen limit 5000\n"
    );
    for (group, range) in [("idle", "127.1.0.0/16"), ("busy", "127.2.0.0/16")] {
        text += &format!(
            " neighbor {group} peer-group\n neighbor {group} remote-as external\n neighbor {group} passive\n \
             neighbor {group} timers 1 3\n neighbor {group} disable-connected-check\n \
             neighbor {group} advertisement-interval 0\n bgp listen range {range} peer-group {group}\n"
        );
    }
    text + " address-family ipv4 unicast\n  neighbor idle route-map NONE out\n exit-address-family\n!\n\
            route-map NONE deny 10\n"
}

#[cfg(test)]
mod tests {
    use base::Duration;

    #[test]
    fn our_configuration_is_one_that_the_daemon_takes() {
        use crate::harness::{Cores, RunDirectory};
        let directory = RunDirectory::new(crate::harness::run::temporary()).unwrap();
        let bench = super::Bench {
            directory,
            cores: Cores::take(),
            bar: indicatif::ProgressBar::hidden(),
        };
        let address = "127.0.0.1:1790".parse().unwrap();
        let (_, ours) = super::headend(&bench, address, 3).unwrap();
        ours.change_policy(201).unwrap();
        for text in [
            ours.text.clone(),
            std::fs::read_to_string(&ours.config).unwrap(),
        ] {
            let settings = daemon::config::parse(&ours.config, text.as_bytes()).unwrap();
            assert_eq!(settings.event.overrun, Duration::from_millis(5));
            assert!(settings.bgp.is_some());
        }
        bench.cores.leave();
    }
}
