//! `[snmp]`: where an SNMP master agent listens for AgentX.

use std::net::SocketAddr;
use std::path::PathBuf;

use settings::{Notes, Section};
use toml::de::DeTable;

/// `[snmp]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snmp {
    /// Where the master agent listens.
    pub agentx: Master,
    /// The context of the objects; `None` for the default one.
    pub context: Option<String>,
}

/// Where a master agent listens for AgentX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Master {
    /// On a Unix socket.
    Unix(PathBuf),
    /// On a TCP port.
    Tcp(SocketAddr),
}

/// Reads `[snmp]`; `None` if there is none.
pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> Option<Snmp> {
    if !root.contains_key("snmp") {
        return None;
    }
    let mut section = Section::open(root, "snmp", notes);
    let remedy = "give the address of the master agent: agentx = \"/var/agentx/master\"";
    section.require("agentx", remedy);
    let agentx = section.parsed("agentx", master);
    // RFC 3411: a context name has at most 32 octets here, as in SNMP-VIEW-BASED-ACM-MIB.
    let context = section.sized("context", 1..=32);
    section.finish();
    Some(Snmp {
        agentx: agentx?.value,
        context: context.map(|context| context.value.to_owned()),
    })
}

fn master(text: &str) -> Result<Master, String> {
    let wrong = || {
        format!(
            "\"{text}\" is neither a path nor tcp: with an IP address and a port; write it as \"/var/agentx/master\" \
             or \"tcp:127.0.0.1:705\""
        )
    };
    if let Some(address) = text.strip_prefix("tcp:") {
        return address.parse().map(Master::Tcp).map_err(|_| wrong());
    }
    // sun_path holds 108 octets, with the zero at its end (unix(7)).
    match text.starts_with('/') && text.len() <= 107 {
        true => Ok(Master::Unix(text.into())),
        false => Err(wrong()),
    }
}
