//! Walled gardens: a subscriber in one reaches only what the garden allows, and its web requests are redirected to a
//! portal.
//!
//! A garden allows what its filter accepts, name servers, and the portal if that has an IP address. While a subscriber is
//! in a garden, the garden's filter takes the place of its own. So a subscriber outside of all gardens costs nothing:
//! only a packet that a filter has refused is looked at again. Start reading at [`Garden`].

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;
use std::sync::Arc;

use filter::Direction;
use forward::icmp::Rate;
use forward::portal::{BadLocation, Portal};
use wire::ip::Header;
use wire::{tcp, udp};

/// The port of name servers (RFC 1035, section 4.2).
const DNS: u16 = 53;

/// Answers to web requests of one subscriber: enough for a page with many parts, too few to fill a line. They share a
/// bucket with its ICMP errors, whose rate uses up a second of it at most, and this one two seconds: so refused packets of
/// other programs never keep a browser from its answer.
pub(crate) const ANSWERS: Rate = Rate::new(200, 400);

/// A walled garden.
#[derive(Debug, PartialEq, Eq)]
pub struct Garden {
    /// Its name.
    pub name: Box<str>,
    /// The filter whose packets pass; without one, only name servers and the portal are reached.
    pub filter: Option<Box<str>>,
    /// Where web requests are redirected to.
    pub(crate) portal: Portal,
    /// The address and port of the portal, if they are known.
    server: Option<SocketAddr>,
    /// The name servers that are reached; if there are none, every one is.
    resolvers: Vec<IpAddr>,
}

impl Garden {
    /// A garden. `portal` is an absolute URI, or an address with a port.
    ///
    /// # Errors
    /// The address of the portal cannot be in a redirect.
    pub fn new(
        name: &str,
        filter: Option<&str>,
        portal: &str,
        resolvers: Vec<IpAddr>,
    ) -> Result<Self, BadLocation> {
        let server = server(portal);
        let portal = match portal.parse::<SocketAddr>() {
            Ok(server) => Portal::new(&format!("http://{server}/"))?,
            Err(_) => Portal::new(portal)?,
        };
        Ok(Self {
            name: name.into(),
            filter: filter.map(Into::into),
            portal,
            server,
            resolvers,
        })
    }

    /// Where web requests are redirected to.
    #[must_use]
    pub fn location(&self) -> &str {
        self.portal.location()
    }

    /// Whether a packet that the filter refused may pass: to or from a name server or the portal.
    fn allows(&self, header: &Header, direction: Direction) -> bool {
        let (address, port) = match direction {
            Direction::In => (header.destination, header.destination_port),
            Direction::Out => (header.source, header.source_port),
        };
        let address = match header.version {
            4 => IpAddr::V4((address as u32).into()),
            _ => IpAddr::V6(address.into()),
        };
        match header.protocol {
            udp::PROTOCOL | tcp::PROTOCOL if port == DNS => {
                self.resolvers.is_empty() || self.resolvers.contains(&address)
            }
            tcp::PROTOCOL => self.server == Some(SocketAddr::new(address, port)),
            _ => false,
        }
    }
}

/// The address and port in `ADDRESS:PORT` or `http://ADDRESS[:PORT]/…`, if there is an IP address.
fn server(portal: &str) -> Option<SocketAddr> {
    if let Ok(server) = portal.parse() {
        return Some(server);
    }
    let (rest, port) = match portal.split_once("://")? {
        ("http", rest) => (rest, 80),
        ("https", rest) => (rest, 443),
        _ => return None,
    };
    let host = rest.split(['/', '?', '#']).next()?;
    if let Ok(server) = host.parse() {
        return Some(server);
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    Some(SocketAddr::new(address.parse().ok()?, port))
}

/// The most gardens, those of earlier configurations included.
pub(crate) const GARDENS_MAX: usize = 255;

/// Names a garden of [`Gardens`]; it keeps its meaning when the configuration changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GardenId(NonZeroU8);

impl GardenId {
    fn of(place: usize) -> Option<Self> {
        NonZeroU8::new(u8::try_from(place + 1).ok()?).map(Self)
    }
}

/// The gardens by id. A removed garden leaves its place empty, so that an id never changes its meaning.
#[derive(Debug, Default)]
pub(crate) struct Gardens(Vec<(Box<str>, Option<Arc<Garden>>)>);

impl Gardens {
    /// These gardens, after those of the configuration before.
    pub(crate) fn new(gardens: &[Arc<Garden>], before: &Self) -> Self {
        let emptied = before.0.iter().map(|(name, _)| (name.clone(), None));
        let mut all = Self(emptied.collect());
        for garden in gardens {
            let place = all.0.iter().position(|(name, _)| *name == garden.name);
            let garden = (garden.name.clone(), Some(Arc::clone(garden)));
            match place {
                Some(place) => all.0[place] = garden,
                None if all.0.len() < GARDENS_MAX => all.0.push(garden),
                None => {}
            }
        }
        all
    }

    /// The garden with a name.
    pub(crate) fn find(&self, name: &str) -> Option<(GardenId, &Arc<Garden>)> {
        let place = self.0.iter().position(|(own, _)| **own == *name)?;
        Some((GardenId::of(place)?, self.0[place].1.as_ref()?))
    }

    /// The garden with an id, unless it was removed.
    pub(crate) fn get(&self, id: GardenId) -> Option<&Arc<Garden>> {
        self.0.get(usize::from(id.0.get()) - 1)?.1.as_ref()
    }

    /// Whether a packet that the filter of a garden refused may pass.
    #[cold]
    pub(crate) fn allow(&self, id: GardenId, header: &Header, direction: Direction) -> bool {
        let garden = self.get(id);
        garden.is_some_and(|garden| garden.allows(header, direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_portal_is_found_if_it_has_one() {
        for (portal, expected) in [
            ("192.0.2.1:8080", Some("192.0.2.1:8080")),
            ("http://192.0.2.1/", Some("192.0.2.1:80")),
            ("http://192.0.2.1:81/pay?x=1", Some("192.0.2.1:81")),
            ("https://192.0.2.1", Some("192.0.2.1:443")),
            ("http://[2001:db8::1]:81/", Some("[2001:db8::1]:81")),
            ("http://[2001:db8::1]", Some("[2001:db8::1]:80")),
            ("http://portal.example/", None),
            ("gopher://192.0.2.1/", None),
        ] {
            let found = server(portal).map(|one| one.to_string());
            assert_eq!(found.as_deref(), expected, "{portal}");
        }
    }

    #[test]
    fn an_id_keeps_its_garden_while_gardens_come_and_go() {
        let garden = |name| Arc::new(Garden::new(name, None, "a", Vec::new()).expect("one"));
        let first = Gardens::new(&[garden("a"), garden("b")], &Gardens::default());
        let (a, b) = (first.find("a").unwrap().0, first.find("b").unwrap().0);
        let second = Gardens::new(&[garden("c"), garden("b")], &first);
        assert!(second.get(a).is_none() && second.find("a").is_none());
        assert_eq!(second.get(b).unwrap().name, "b".into());
        let third = Gardens::new(&[garden("a")], &second);
        assert_eq!(third.find("a").unwrap().0, a);
        assert!(third.get(b).is_none());
    }

    #[test]
    fn an_address_with_a_port_becomes_a_location() {
        let garden = Garden::new("a", None, "192.0.2.1:8080", Vec::new()).expect("a portal");
        assert_eq!(garden.location(), "http://192.0.2.1:8080/");
        assert!(Garden::new("a", None, "http://a b/", Vec::new()).is_err());
    }
}
