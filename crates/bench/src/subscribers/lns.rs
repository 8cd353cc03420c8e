//! The LNS that is measured: this program, with a users file or a RADIUS server.

use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::Result;
use serde_json::Value;

use super::radius::SECRET;
use crate::harness::Bench;
use crate::harness::server::{Lns, write_private};

/// The password of every user.
pub(crate) const PASSWORD: &str = "open sesame";

/// Number of tunnels at one listen address; L2TPv2's tunnel ids have 16 bits.
const AT_ONE_ADDRESS: u32 = 60_000;

/// How a subscriber authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Proof {
    Chap,
    Pap,
}

/// What authenticates subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(super) enum By {
    /// A users file.
    Users,
    /// A RADIUS server.
    Radius,
    /// A RADIUS server that also gets accounting records, from a store on disk.
    Accounts,
}

/// The services of a subscriber in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) proof: Proof,
    pub(super) by: By,
    pub(super) ipv6: bool,
}

impl Kind {
    pub(super) fn name(self) -> String {
        let proof = match self.proof {
            Proof::Chap => "CHAP",
            Proof::Pap => "PAP",
        };
        let by = match self.by {
            By::Users => "users file",
            By::Radius => "RADIUS",
            By::Accounts => "RADIUS with accounts",
        };
        let ipv6 = if self.ipv6 { " and IPv6" } else { "" };
        format!("{proof}, {by}, IPv4{ipv6}")
    }
}

/// The name of user `n`.
pub(crate) fn user(n: u32) -> String {
    format!("user{n}@home.example")
}

/// A users file with that many users.
pub(crate) fn users(count: u32) -> String {
    let mut text = String::new();
    for n in 0..count {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[user]]\nname = \"{}\"\npassword = \"{PASSWORD}\"\n",
            user(n)
        );
    }
    text
}

/// The LNS's configuration; `servers` are the RADIUS server's addresses for authentication and
/// accounting.
fn text(socket: &str, kind: Kind, subscribers: u32, [server, accounts]: [SocketAddr; 2]) -> String {
    let listen: Vec<String> = (1..=subscribers.div_ceil(AT_ONE_ADDRESS).clamp(1, 9))
        .map(|n| format!("\"127.0.0.{n}:0\""))
        .collect();
    let proof = match kind.proof {
        Proof::Chap => "chap",
        Proof::Pap => "pap",
    };
    let by = match kind.by {
        By::Users => "[users]\nfile = \"users.toml\"\n".to_owned(),
        By::Radius => {
            format!(
                "[radius]\n[[radius.server]]\nauthentication = \"{server}\"\nsecret = \"{SECRET}\"\n"
            )
        }
        By::Accounts => format!(
            "[radius]\naccounting_store = \"accounts.redb\"\n[[radius.server]]\nauthentication = \"{server}\"\n\
             accounting = \"{accounts}\"\nsecret = \"{SECRET}\"\n"
        ),
    };
    format!(
        "[control]\nsocket = {}\n[lns]\nlisten = [{}]\nhello_interval_s = 3600\n\
         [log]\nto = \"stderr\"\n[limits]\ntunnels = 1000000\nsessions = 1000000\n\
         [ppp]\naddress = \"10.255.255.254\"\ndns = [\"10.255.255.253\", \"10.255.255.252\"]\nauthenticate = [\"{proof}\"]\n\
         ipv6 = {}\nsubscribers = 1000000\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/13\"]\n{by}",
        Value::from(socket),
        listen.join(", "),
        kind.ipv6
    )
}

/// Starts an LNS for that many subscribers.
///
/// # Errors
/// It does not start.
pub(super) fn start(
    bench: &Bench,
    kind: Kind,
    subscribers: u32,
    servers: [SocketAddr; 2],
) -> Result<Lns> {
    write_private(&bench.directory.path("users.toml"), &users(subscribers))?;
    // The store may be left from an earlier wave.
    let _ = std::fs::remove_file(bench.directory.path("accounts.redb"));
    let socket = bench.directory.path("lns.sock");
    let text = text(&socket.to_string_lossy(), kind, subscribers, servers);
    Lns::start_with(bench, "lns", &text, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_configuration_is_one_that_the_daemon_takes_and_its_users_are_users() {
        let directory = std::env::temp_dir().join(format!("bench-lns-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        write_private(&directory.join("users.toml"), &users(3)).unwrap();
        let servers = ["127.0.0.1:1812", "127.0.0.1:1813"].map(|at| at.parse().unwrap());
        for (by, has_radius) in [(By::Users, false), (By::Radius, true), (By::Accounts, true)] {
            let kind = Kind {
                proof: Proof::Pap,
                by,
                ipv6: true,
            };
            let text = text("/run/bench/lns.sock", kind, 100_000, servers);
            let settings = daemon::config::parse(&directory.join("lns.toml"), text.as_bytes());
            let settings = settings.unwrap();
            assert_eq!(settings.lns.unwrap().listen.len(), 2);
            assert!(settings.subscribers.edge.ipv6);
            assert_eq!(settings.subscribers.radius.is_some(), has_radius);
        }
        let users = daemon::config::load_users(&directory.join("users.toml"));
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(users.unwrap().len(), 3);
    }
}
