//! Which sessions a request selects (RFC 5176, section 3).

use core::net::Ipv4Addr;

use crate::accounting::{SessionId, Subscriber};

/// The session identification attributes of a request. A session is selected if it matches all that are
/// present.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    /// User-Name.
    pub user: Option<Box<[u8]>>,
    /// Acct-Session-Id: identifies at most one session.
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
    /// Whether no attribute is present; then no session is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The session it names, if Acct-Session-Id has the form that we send.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        SessionId::parse(self.session.as_deref()?)
    }

    /// Whether this session is selected.
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
