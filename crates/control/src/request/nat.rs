//! Requests about the translation of addresses.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// Arguments of `nat.who`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatPort {
    /// The external address and port.
    pub external: SocketAddrV4,
}

/// Reads an address and port of the command line.
///
/// # Errors
/// What would be right.
pub fn address_and_port(text: &str) -> Result<SocketAddrV4, String> {
    let read = text.parse();
    read.map_err(|_| "write an IPv4 address and a port: 203.0.113.1:40000".to_owned())
}

/// A transport protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Arguments of `nat.forward.add`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct NatForward {
    /// The protocol
    #[arg(value_enum)]
    pub protocol: Transport,
    /// The subscriber's inside address and port
    #[arg(value_parser = address_and_port)]
    pub inside: SocketAddrV4,
    /// The external address and port [default: a free port of the subscriber]
    #[arg(value_parser = address_and_port)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<SocketAddrV4>,
    /// End it after S seconds [default: when the subscriber disconnects, or at a restart]
    #[arg(long = "lifetime", value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_s: Option<u32>,
}

/// Arguments of `nat.forward.delete`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct NatForwardName {
    /// The protocol
    #[arg(value_enum)]
    pub protocol: Transport,
    /// The external address and port
    #[arg(value_parser = address_and_port)]
    pub external: SocketAddrV4,
}
