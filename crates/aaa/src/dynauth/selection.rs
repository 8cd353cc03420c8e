//! Which sessions a request selects (RFC 5176, section 3).

use core::net::Ipv4Addr;

use crate::Prefix;
use crate::accounting::SessionId;
use crate::radius::Line;

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
    /// Framed-Interface-Id.
    pub interface: Option<[u8; 8]>,
    /// Framed-IPv6-Prefix: networks of the session. All of them must lead to it.
    pub prefixes: Vec<Prefix>,
    /// Calling-Station-Id.
    pub calling: Option<Box<[u8]>>,
    /// Called-Station-Id.
    pub called: Option<Box<[u8]>>,
}

/// What identifies a session, to be compared with a [`Selection`].
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Its id in accounting.
    pub session: SessionId,
    /// The subscriber's name.
    pub user: &'a [u8],
    /// Its line.
    pub line: Line<'a>,
    /// Its IPv4 address.
    pub address: Option<Ipv4Addr>,
    /// Its interface identifier, while IPv6CP is open.
    pub interface: Option<[u8; 8]>,
    /// The networks behind it.
    pub networks: &'a [Prefix],
    /// Its link's prefix, its delegated prefix and its address, as far as it has them.
    pub leases: [Option<Prefix>; 3],
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
    pub fn matches(&self, one: &Identity<'_>) -> bool {
        let is = |wanted: &Option<Box<[u8]>>, own: &[u8]| match wanted {
            Some(wanted) => **wanted == *own,
            None => true,
        };
        let leads = |network: &Prefix| {
            one.networks.contains(network) || one.leases.contains(&Some(*network))
        };
        !self.is_empty()
            && is(&self.user, one.user)
            && is(&self.session, &one.session.text())
            && is(&self.port_id, one.line.port_id.as_bytes())
            && is(&self.calling, one.line.calling)
            && is(&self.called, one.line.called)
            && self.port.is_none_or(|port| port == one.line.port)
            && (self.address.is_none() || self.address == one.address)
            && (self.interface.is_none() || self.interface == one.interface)
            && self.prefixes.iter().all(leads)
    }
}
