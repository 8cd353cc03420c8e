//! Configuration of a client: its servers and its limits. Start reading at [`Config`].

use core::net::SocketAddr;

use base::{Duration, Redacted};

use super::queue::QueueAttributes;
use super::request::Nas;

/// The most servers of a client.
pub const SERVERS_MAX: usize = 16;
/// The most sockets for one service: 256 requests can be outstanding on each.
pub const SOCKETS_MAX: u16 = 1_024;

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// The identity sent in requests.
    pub nas: Nas,
    /// The servers; the first live one is asked.
    pub servers: Vec<ServerConfig>,
    /// The most outstanding requests; further ones wait.
    pub outstanding_max: usize,
    /// The most waiting requests; further ones are refused.
    pub waiting_max: usize,
    /// A request fails after waiting this long.
    pub waiting_time: Duration,
    /// Whether to send Acct-Delay-Time (RFC 2866, section 5.2), for servers that ignore Event-Timestamp. Its
    /// value changes with each retransmission, so each needs an identifier of its own, and the server treats it
    /// as a new request.
    pub acct_delay_time: bool,
    /// How attributes about queues are read.
    pub queue: QueueAttributes,
}

impl Config {
    /// A client with default limits and no server.
    #[must_use]
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            servers: Vec::new(),
            outstanding_max: 32_768,
            waiting_max: 32_768,
            waiting_time: Duration::from_secs(10),
            acct_delay_time: false,
            queue: QueueAttributes::default(),
        }
    }

    /// Validates the configuration.
    ///
    /// # Errors
    /// What is invalid.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.servers.len() > SERVERS_MAX {
            return Err(ConfigError::Servers);
        }
        if self.nas.identifier.is_none() && self.nas.address.is_none() {
            return Err(ConfigError::Nameless);
        }
        if self
            .nas
            .identifier
            .as_ref()
            .is_some_and(|id| id.len() > 253)
        {
            return Err(ConfigError::Identifier);
        }
        let mut addresses = Vec::new();
        for server in &self.servers {
            let name = || server.name.clone();
            if server.secret.reveal().is_empty() {
                return Err(ConfigError::Secret(name()));
            }
            if server.transmissions == 0 || server.dead_after == 0 {
                return Err(ConfigError::Never(name()));
            }
            if server.timeout < Duration::from_millis(1) {
                return Err(ConfigError::Timeout(name()));
            }
            if !(1..=SOCKETS_MAX).contains(&server.sockets_max) {
                return Err(ConfigError::Sockets(name()));
            }
            for address in [server.authentication, server.accounting]
                .into_iter()
                .flatten()
            {
                if addresses.contains(&address) {
                    return Err(ConfigError::Address(address));
                }
                addresses.push(address);
            }
        }
        Ok(())
    }
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The operator's name for it.
    pub name: Box<str>,
    /// Its authentication address, usually port 1812; `None` if it does not authenticate.
    pub authentication: Option<SocketAddr>,
    /// Its accounting address, usually port 1813; `None` if it does not do accounting.
    pub accounting: Option<SocketAddr>,
    /// The shared secret.
    pub secret: Redacted<Box<[u8]>>,
    /// Time before the first retransmission. It doubles with each further one, up to 16 s, and varies randomly
    /// by up to a tenth (RFC 5080, section 2.2.1: IRT and MRT).
    pub timeout: Duration,
    /// Transmissions before moving to the next server (RFC 5080, section 2.2.1: MRC).
    pub transmissions: u8,
    /// The server is declared dead after that many consecutive timeouts without a reply.
    pub dead_after: u8,
    /// Interval between probes of a dead server.
    pub dead_time: Duration,
    /// Whether to discard replies to Access-Requests without Message-Authenticator. Disable this only for a
    /// server that cannot send it: without it, an attacker on the path can forge replies.
    pub require_message_authenticator: bool,
    /// The most sockets for it: 256 requests can be outstanding on each.
    pub sockets_max: u16,
}

impl ServerConfig {
    /// A server with default timers.
    #[must_use]
    pub fn new(name: &str, secret: &[u8]) -> Self {
        Self {
            name: name.into(),
            authentication: None,
            accounting: None,
            secret: Redacted::new(secret.into()),
            timeout: Duration::from_secs(2),
            transmissions: 3,
            dead_after: 3,
            dead_time: Duration::from_secs(30),
            require_message_authenticator: true,
            sockets_max: 128,
        }
    }
}

/// Why a client's configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too many servers.
    #[error("more than {SERVERS_MAX} servers")]
    Servers,
    /// Neither a name nor an address identifies the NAS (RFC 2865, section 4.1).
    #[error("neither a NAS identifier nor a NAS address")]
    Nameless,
    /// The NAS-Identifier does not fit an attribute.
    #[error("a NAS identifier of more than 253 octets")]
    Identifier,
    /// An empty secret (RFC 2865, section 3).
    #[error("server {0}: an empty secret")]
    Secret(Box<str>),
    /// The server would never be asked, or declared dead immediately.
    #[error("server {0}: zero transmissions, or dead after zero time-outs")]
    Never(Box<str>),
    /// A timeout too short for any reply.
    #[error("server {0}: a time-out below 1 ms")]
    Timeout(Box<str>),
    /// An invalid number of sockets.
    #[error("server {0}: sockets must be 1 to {SOCKETS_MAX}")]
    Sockets(Box<str>),
    /// Two servers share an address, so their replies could not be distinguished.
    #[error("address {0} is used twice")]
    Address(SocketAddr),
}
