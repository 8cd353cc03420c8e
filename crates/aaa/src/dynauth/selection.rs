//! Which sessions a request means (RFC 5176, section 3).

use core::net::Ipv4Addr;

use crate::accounting::{SessionId, Subscriber};

/// The session identification attributes of a request. A session is meant if all that are there are its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    /// User-Name.
    pub user: Option<Box<[u8]>>,
    /// Acct-Session-Id: names one session at most.
    pub session: Option<Box<[u8]>>,
    /// NAS-Port.
    pub port: Option<u32>,
    /// NAS-Port-Id.
    pub port_id: Option<Box<[u8]>>,
    /// Framed-IP-Address.
    pub address: Option<Ipv4Addr>,
    /// Calling-Station-Id.
    pub calling: Option<Box<[u8]>>,
    /// Called-Station-Id.
    pub called: Option<Box<[u8]>>,
}

impl Selection {
    /// Whether nothing is asked of a session: then none is meant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The session that it names, where it names one of the form that we send.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        SessionId::parse(self.session.as_deref()?)
    }

    /// Whether this session is meant.
    #[must_use]
    pub fn matches(&self, session: SessionId, subscriber: &Subscriber<'_>) -> bool {
        let is = |wanted: &Option<Box<[u8]>>, own: &[u8]| match wanted {
            Some(wanted) => **wanted == *own,
            None => true,
        };
        !self.is_empty()
            && is(&self.user, subscriber.user)
            && is(&self.session, &session.text())
            && is(&self.port_id, subscriber.line.port_id.as_bytes())
            && is(&self.calling, subscriber.line.calling)
            && is(&self.called, subscriber.line.called)
            && self.port.is_none_or(|port| port == subscriber.line.port)
            && (self.address.is_none() || self.address == subscriber.address)
    }
}
