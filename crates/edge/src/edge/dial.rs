//! Links in which we are the client: voluntary tunnels.

use aaa::Prefix;
use base::Instant;
use ppp::{Credentials, Ipv4Offer, Ipv6Offer, Side};

use crate::access::Access;
use crate::edge::Edge;

/// What a client of ours proves itself by, and asks for.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Name and secret; none where the peer does not ask.
    pub credentials: Option<Credentials>,
    /// Whether to ask for an IPv4 address and name servers.
    pub ipv4: bool,
    /// Whether to ask for IPv6.
    pub ipv6: bool,
    /// Networks behind this client: packets from them go to its session, and packets to them come by it.
    pub networks: Vec<Prefix>,
}

impl Dial {
    /// The name that it says.
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
    /// Has a call of ours become a link of a client once its session is up. To be said right after the call was made.
    pub fn dial(&mut self, session: A::Session, dial: Dial, now: Instant) {
        // Of a call that has failed already nothing more is heard.
        if self.endpoint.session(session).is_some() {
            self.dials.insert(session, dial);
        }
        self.heed(now);
    }
}
