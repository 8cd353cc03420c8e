//! Links in which we are the PPP client: voluntary tunnels.

use aaa::Prefix;
use base::Instant;
use ppp::{Credentials, Ipv4Offer, Ipv6Offer, Side};

use crate::access::Access;
use crate::edge::Edge;

/// How our client authenticates, and what it asks for.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Name and secret; none if the peer does not ask.
    pub credentials: Option<Credentials>,
    /// Whether to ask for an IPv4 address and name servers.
    pub ipv4: bool,
    /// Whether to ask for IPv6.
    pub ipv6: bool,
    /// Networks behind this client: packets from them go into its session, and packets to them arrive in it.
    pub networks: Vec<Prefix>,
}

impl Dial {
    /// The name that it authenticates with.
    pub(crate) fn name(&self) -> Option<Box<[u8]>> {
        let credentials = self.credentials.as_ref()?;
        Some(credentials.name.clone())
    }

    pub(crate) fn side(self) -> Side {
        Side::Client {
            credentials: self.credentials,
            ipv4: self.ipv4.then_some(Ipv4Offer::ASK),
            ipv6: self.ipv6.then(|| Ipv6Offer::free(0)),
        }
    }
}

impl<A: Access> Edge<A> {
    /// Makes our call the link of a client once its session is up. Call this right after the call was made.
    pub fn dial(&mut self, session: A::Session, dial: Dial, now: Instant) {
        // A call that failed already has no further events.
        if self.endpoint.session(session).is_some() {
            self.dials.insert(session, dial);
        }
        self.heed(now);
    }
}
