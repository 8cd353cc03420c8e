//! The permitted clients, and the conditions for accepting a request.

use core::net::IpAddr;

use base::{Duration, Redacted};

use crate::radius::{Nas, QueueAttributes};

/// The permitted clients, and the conditions for accepting a request.
#[derive(Clone, Debug)]
pub struct DynauthConfig {
    /// Our own identity; NAS attributes in a request must match it.
    pub nas: Nas,
    /// The clients that may send requests.
    pub clients: Vec<DynauthClient>,
    /// How attributes about queues are read.
    pub queue: QueueAttributes,
    /// How far an Event-Timestamp may be from the current time (RFC 5176, section 6.3).
    pub window: Duration,
    /// The most requests remembered within the window. At the limit the oldest is forgotten, and requests as old as it
    /// are no longer accepted; one that is not answered yet is kept, and the new request is discarded.
    pub recent_max: usize,
}

/// A client that may send requests.
#[derive(Clone, Debug)]
pub struct DynauthClient {
    /// Its address; the port does not matter.
    pub address: IpAddr,
    /// The shared secret.
    pub secret: Redacted<Box<[u8]>>,
    /// Whether its requests without Message-Authenticator are discarded.
    pub require_message_authenticator: bool,
    /// Whether its requests without Event-Timestamp are discarded.
    pub require_event_timestamp: bool,
}

impl DynauthClient {
    /// A client from which neither attribute is required.
    #[must_use]
    pub fn new(address: IpAddr, secret: Redacted<Box<[u8]>>) -> Self {
        Self {
            address,
            secret,
            require_message_authenticator: false,
            require_event_timestamp: false,
        }
    }
}

impl DynauthConfig {
    /// The default limits, and no clients.
    #[must_use]
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            clients: Vec::new(),
            queue: QueueAttributes::default(),
            window: Duration::from_secs(300),
            recent_max: 65_536,
        }
    }
}
