//! The servers of a client, and its limits.

use core::net::SocketAddr;

use base::{Duration, Redacted};

use super::request::Nas;

/// Servers that a client may have.
pub const SERVERS_MAX: usize = 16;
/// Sockets that a client may use for one service: 256 requests outstanding on each.
pub const SOCKETS_MAX: u16 = 1_024;

/// A client.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who asks.
    pub nas: Nas,
    /// Whom it asks: the first that lives.
    pub servers: Vec<ServerConfig>,
    /// Requests that may be outstanding. The next ones wait.
    pub outstanding_max: usize,
    /// Requests that may wait for others to end. The next one is refused.
    pub waiting_max: usize,
    /// A request fails that had to wait for so long.
    pub waiting_time: Duration,
    /// Whether Acct-Delay-Time is sent (RFC 2866, section 5.2), for servers that do not look at Event-Timestamp. It
    /// changes with each repetition, which then needs an identifier of its own, and the server takes it for a new one.
    pub acct_delay_time: bool,
}

impl Config {
    /// A client with the usual limits and no server.
    #[must_use]
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            servers: Vec::new(),
            outstanding_max: 32_768,
            waiting_max: 32_768,
            waiting_time: Duration::from_secs(10),
            acct_delay_time: false,
        }
    }

    /// Whether a client can work so.
    ///
    /// # Errors
    /// What it cannot work with.
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

/// A server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What an operator calls it.
    pub name: Box<str>,
    /// Where it authenticates, usually port 1812; none: it does not.
    pub authentication: Option<SocketAddr>,
    /// Where it takes accounts, usually port 1813; none: it does not.
    pub accounting: Option<SocketAddr>,
    /// The secret that it shares with us.
    pub secret: Redacted<Box<[u8]>>,
    /// The first repetition comes after so long, each further one after twice as long, up to 16 s; all within a tenth
    /// of that (RFC 5080, section 2.2.1: IRT and MRT).
    pub timeout: Duration,
    /// So many times it is sent a request before the next server is (RFC 5080, section 2.2.1: MRC).
    pub transmissions: u8,
    /// It is dead when so many times in a row a time-out passed without a sign of life since.
    pub dead_after: u8,
    /// So often is one request tried at a dead server.
    pub dead_time: Duration,
    /// Whether replies to Access-Requests without Message-Authenticator are discarded. Only a server that must not
    /// send any is reason to say no: without it, who sits between can forge them.
    pub require_message_authenticator: bool,
    /// So many sockets may be used: 256 requests outstanding for each.
    pub sockets_max: u16,
}

impl ServerConfig {
    /// A server with the usual times.
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

/// What a client cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too many servers.
    #[error("more than {SERVERS_MAX} servers")]
    Servers,
    /// A request must say who asks (RFC 2865, section 4.1).
    #[error("neither a NAS identifier nor a NAS address")]
    Nameless,
    /// An identifier that no attribute has room for.
    #[error("a NAS identifier of more than 253 octets")]
    Identifier,
    /// An empty secret (RFC 2865, section 3).
    #[error("server {0}: an empty secret")]
    Secret(Box<str>),
    /// It would never be asked, or be dead at once.
    #[error("server {0}: zero transmissions, or dead after zero time-outs")]
    Never(Box<str>),
    /// A time-out that no reply can be in time for.
    #[error("server {0}: a time-out below 1 ms")]
    Timeout(Box<str>),
    /// A number of sockets that cannot be.
    #[error("server {0}: sockets must be 1 to {SOCKETS_MAX}")]
    Sockets(Box<str>),
    /// Replies could not be told apart.
    #[error("address {0} is used twice")]
    Address(SocketAddr),
}
