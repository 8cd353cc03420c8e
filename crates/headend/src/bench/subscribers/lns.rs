//! The LNS that is measured: this program, with a users file or a RADIUS server.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use crate::bench::tunnels::Bench;
use crate::bench::tunnels::server::{Lns, write_private};

/// What every user knows.
pub(super) const PASSWORD: &str = "open sesame";

/// L2TPv2 has 16 bits for the ids of the tunnels at one listen address.
const AT_ONE_ADDRESS: u32 = 60_000;

/// How a peer shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(super) enum Proof {
    Chap,
    Pap,
}

/// What is done for a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) proof: Proof,
    pub(super) ipv6: bool,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match (self.proof, self.ipv6) {
            (Proof::Chap, false) => "CHAP, IPv4",
            (Proof::Chap, true) => "CHAP, IPv4 and IPv6",
            (Proof::Pap, false) => "PAP, IPv4",
            (Proof::Pap, true) => "PAP, IPv4 and IPv6",
        }
    }
}

/// The name of the `n`th user.
pub(super) fn user(n: u32) -> String {
    format!("user{n}@home.example")
}

/// The users file of so many.
fn users(count: u32) -> String {
    let mut text = String::new();
    for n in 0..count {
        // A string takes what is written.
        let _ = write!(
            text,
            "[[user]]\nname = \"{}\"\npassword = \"{PASSWORD}\"\n",
            user(n)
        );
    }
    text
}

/// Its configuration.
fn text(socket: &str, kind: Kind, subscribers: u32) -> String {
    let listen: Vec<String> = (1..=subscribers.div_ceil(AT_ONE_ADDRESS).clamp(1, 9))
        .map(|n| format!("\"127.0.0.{n}:0\""))
        .collect();
    let proof = match kind.proof {
        Proof::Chap => "chap",
        Proof::Pap => "pap",
    };
    format!(
        "[control]\nsocket = {}\n[lns]\nlisten = [{}]\nhello_interval_s = 3600\n\
         [log]\nto = \"stderr\"\n[limits]\ntunnels = 1000000\nsessions = 1000000\n\
         [ppp]\naddress = \"10.255.255.254\"\nauthenticate = [\"{proof}\"]\nipv6 = {}\nsubscribers = 1000000\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/13\"]\n\
         [users]\nfile = \"users.toml\"\n",
        Value::from(socket),
        listen.join(", "),
        kind.ipv6
    )
}

/// Starts it, ready for so many subscribers.
///
/// # Errors
/// It does not start.
pub(super) fn start(bench: &Bench, kind: Kind, subscribers: u32) -> Result<Lns> {
    write_private(&bench.home.path("users.toml"), &users(subscribers))?;
    let socket = bench.home.path("lns.sock");
    let text = text(&socket.to_string_lossy(), kind, subscribers);
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
        let kind = Kind {
            proof: Proof::Pap,
            ipv6: true,
        };
        let text = text("/run/bench/lns.sock", kind, 100_000);
        let settings = crate::config::parse(&directory.join("lns.toml"), text.as_bytes());
        let users = crate::config::load_users(&directory.join("users.toml"));
        std::fs::remove_dir_all(&directory).unwrap();
        let settings = settings.unwrap();
        assert_eq!(settings.lns.unwrap().listen.len(), 2);
        assert!(settings.subscribers.edge.ipv6);
        assert_eq!(users.unwrap().len(), 3);
    }
}
