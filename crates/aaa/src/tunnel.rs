//! Tunnels that a subscriber's session is handed over in, from the configuration, the users file or an Access-Accept
//! (RFC 2868).

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::Redacted;

/// A tunnel to an LNS. Sessions with equal values share one (RFC 2868, section 3.7: Tunnel-Assignment-ID).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelTo {
    /// The LNS: Tunnel-Server-Endpoint.
    pub server: SocketAddr,
    /// Our address: Tunnel-Client-Endpoint; `None` for any.
    pub client: Option<IpAddr>,
    /// The shared secret: Tunnel-Password; `None` for the configuration's.
    pub secret: Option<Redacted<Vec<u8>>>,
    /// Our Host Name: Tunnel-Client-Auth-ID; `None` for the configuration's.
    pub client_name: Option<Box<str>>,
    /// The Host Name that the LNS must give: Tunnel-Server-Auth-ID; `None` for any.
    pub server_name: Option<Box<str>>,
    /// Which of several tunnels to the same LNS: Tunnel-Assignment-ID.
    pub assignment: Box<str>,
}

impl TunnelTo {
    /// A tunnel to this LNS, with the configuration's secret and names.
    #[must_use]
    pub fn new(server: SocketAddr) -> Self {
        Self {
            server,
            client: None,
            secret: None,
            client_name: None,
            server_name: None,
            assignment: Box::default(),
        }
    }
}

/// Equal tunnels have equal hashes; those that differ in their secrets alone, too.
impl Hash for TunnelTo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.server, self.client, &self.assignment).hash(state);
    }
}

/// An LNS that may take a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lns {
    /// The tunnel to it.
    pub tunnel: Arc<TunnelTo>,
    /// Those with the lowest are tried first: Tunnel-Preference (RFC 2868, section 3.8).
    pub preference: u32,
    /// The group of the session: Tunnel-Private-Group-ID (RFC 2868, section 3.6).
    pub private_group: Box<[u8]>,
}

/// Where a session is handed over to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tunnelled {
    /// The tunnel of the configuration with this name.
    Named(Box<str>),
    /// One of these.
    To(Box<[Lns]>),
}
