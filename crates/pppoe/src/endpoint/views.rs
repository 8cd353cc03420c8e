//! Rows for `show`.

use wire::pppoe::Mac;

use super::Endpoint;
use crate::counters::Counters;
use crate::session::{Role, Session, SessionKey, SessionView};

impl Endpoint {
    /// A session; `None` if it no longer exists.
    #[must_use]
    pub fn session(&self, session: SessionKey) -> Option<SessionView<'_>> {
        self.sessions.get(session.0).map(|found| self.view(found))
    }

    /// All sessions, by index.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView<'_>> {
        self.sessions.iter().map(|(_, found)| self.view(found))
    }

    /// The first session whose index is `index` or more. To list sessions in parts while they change, continue one past
    /// the index of the last result.
    #[must_use]
    pub fn next_session(&self, index: u32) -> Option<SessionView<'_>> {
        let (_, found) = self.sessions.next_from(index)?;
        Some(self.view(found))
    }

    /// Sessions of all phases and both roles.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// Server sessions whose hosts have sent no PPP frame yet.
    #[must_use]
    pub const fn half_open(&self) -> u32 {
        self.half_open
    }

    /// The session with an id that a station uses at a port.
    #[must_use]
    pub fn find(&self, port: u16, mac: Mac, id: u16) -> Option<SessionKey> {
        let index = self.find_index(port, mac, id)?;
        Some(SessionKey(self.at(index).key))
    }

    /// Everything counted since the endpoint was made.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn view<'a>(&'a self, session: &'a Session) -> SessionView<'a> {
        let ac_name = match (&session.client, self.port(session.route.port)) {
            (Some(client), _) => &client.ac_name,
            (None, Some(port)) => self.ac_name(port),
            (None, None) => &self.config.ac_name,
        };
        let has_uniq = session.role == Role::Client || !session.host_uniq.is_empty();
        SessionView {
            key: SessionKey(session.key),
            id: session.id,
            route: session.route,
            role: session.role,
            phase: session.phase,
            service_name: &session.service_name,
            ac_name,
            host_uniq: has_uniq.then_some(&*session.host_uniq),
            line: session.line.as_ref(),
            max_payload: session.max_payload,
            since: session.since,
        }
    }
}
