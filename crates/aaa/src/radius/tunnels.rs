//! Tunnels of an Access-Accept (RFC 2868): attributes with a tag are of one group, and each group is a tunnel.
//!
//! Attributes without a tag are a group too. If that group names no server and others do, its values are those of each
//! group that has none of its own.
//!
//! Left out: names in place of addresses (section 3.4), which would need a resolver.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::Redacted;
use wire::radius::attribute::{
    TUNNEL_ASSIGNMENT_ID, TUNNEL_CLIENT_AUTH_ID, TUNNEL_CLIENT_ENDPOINT, TUNNEL_MEDIUM_TYPE,
    TUNNEL_PASSWORD, TUNNEL_PREFERENCE, TUNNEL_PRIVATE_GROUP_ID, TUNNEL_SERVER_AUTH_ID,
    TUNNEL_SERVER_ENDPOINT, TUNNEL_TYPE, medium, tunnel_type,
};
use wire::radius::secret::reveal_salted;
use wire::radius::{Attribute, Authenticator};

use crate::tunnel::{Lns, TunnelTo, Tunnelled};

/// The largest tag (RFC 2868, section 3.1).
const TAG_MAX: u8 = 0x1f;

/// The port of L2TP (RFC 2661, section 8.1).
const PORT: u16 = 1701;

/// The most octets of a Host Name, and so of an authentication name (RFC 2661, section 4.4.3).
const NAME_OCTETS_MAX: usize = 255;

/// The preference of a tunnel without one: behind all that have one.
const PREFERENCE_NONE: u32 = 1 << 24;

/// What decrypts salted attributes: the secret shared with the server, and the authenticator of our request.
#[derive(Clone, Copy)]
pub struct Salted<'a> {
    /// The secret.
    pub secret: &'a [u8],
    /// The Request Authenticator.
    pub request: &'a Authenticator,
}

/// The attributes of one tag.
#[derive(Clone, Debug, Default)]
struct Group {
    kind: Option<u32>,
    medium: Option<u32>,
    client: Option<IpAddr>,
    /// The server's address; `Some(None)` if it is given and no address.
    server: Option<Option<IpAddr>>,
    password: Option<Redacted<Vec<u8>>>,
    preference: Option<u32>,
    assignment: Option<Box<str>>,
    private_group: Option<Box<[u8]>>,
    client_name: Option<Box<str>>,
    server_name: Option<Box<str>>,
}

/// The tunnels of an Access-Accept, while it is read.
#[derive(Default)]
pub(super) struct Reader(Vec<(u8, Group)>);

impl Reader {
    /// Takes an attribute. `None` if its value cannot be read; `Some(false)` if it is none of a tunnel.
    pub(super) fn take(
        &mut self,
        attribute: Attribute<'_>,
        salted: Option<Salted<'_>>,
    ) -> Option<bool> {
        let (tag, value) = match attribute.kind {
            TUNNEL_TYPE | TUNNEL_MEDIUM_TYPE | TUNNEL_PREFERENCE => {
                let &[tag, ..] = attribute.value else {
                    return None;
                };
                // A tag that is too large is none, and its octet is no part of the value.
                (if tag > TAG_MAX { 0 } else { tag }, attribute.value)
            }
            TUNNEL_PASSWORD => {
                let (&tag, salt) = attribute.value.split_first()?;
                (if tag > TAG_MAX { 0 } else { tag }, salt)
            }
            TUNNEL_CLIENT_ENDPOINT
            | TUNNEL_SERVER_ENDPOINT
            | TUNNEL_PRIVATE_GROUP_ID
            | TUNNEL_ASSIGNMENT_ID
            | TUNNEL_CLIENT_AUTH_ID
            | TUNNEL_SERVER_AUTH_ID => match attribute.value {
                [tag @ 0..=TAG_MAX, rest @ ..] => (*tag, rest),
                value => (0, value),
            },
            _ => return Some(false),
        };
        let group = self.group(tag);
        let number = || {
            let value: [u8; 4] = value.try_into().ok()?;
            Some(u32::from_be_bytes(value) & 0x00ff_ffff)
        };
        match attribute.kind {
            TUNNEL_TYPE => group.kind = Some(number()?),
            TUNNEL_MEDIUM_TYPE => group.medium = Some(number()?),
            TUNNEL_PREFERENCE => group.preference = Some(number()?),
            TUNNEL_PASSWORD => {
                let salted = salted?;
                let clear = reveal_salted(value, salted.secret, salted.request)?;
                group.password = (!clear.is_empty()).then(|| Redacted::new(clear));
            }
            TUNNEL_CLIENT_ENDPOINT => group.client = Some(address(value)?),
            TUNNEL_SERVER_ENDPOINT => group.server = Some(address(value)),
            TUNNEL_PRIVATE_GROUP_ID => group.private_group = Some(value.into()),
            TUNNEL_ASSIGNMENT_ID => group.assignment = Some(text(value)?),
            TUNNEL_CLIENT_AUTH_ID => group.client_name = Some(name(value)?),
            _ => group.server_name = Some(name(value)?),
        }
        Some(true)
    }

    fn group(&mut self, tag: u8) -> &mut Group {
        let place = match self.0.iter().position(|(known, _)| *known == tag) {
            Some(place) => place,
            None => {
                self.0.push((tag, Group::default()));
                self.0.len() - 1
            }
        };
        &mut self.0[place].1
    }

    /// The tunnels; `None` if there are none. `Err`: there are, and none can be opened here, which counts as an
    /// Access-Reject (RFC 2868, section 3.1).
    pub(super) fn finish(mut self) -> Result<Option<Box<Tunnelled>>, ()> {
        let others = (self.0.iter()).any(|(tag, group)| *tag != 0 && group.server.is_some());
        let shared = self.0.iter().position(|(tag, _)| *tag == 0);
        let shared = shared.filter(|&place| others && self.0[place].1.server.is_none());
        let shared = shared.map(|place| self.0.remove(place).1);
        let mut groups: Vec<Group> = self.0.into_iter().map(|(_, group)| group).collect();
        if let Some(shared) = &shared {
            groups.iter_mut().for_each(|group| group.complete(shared));
        }
        if groups.iter().all(|group| group.kind.is_none()) {
            return Ok(None);
        }
        let lns: Box<[Lns]> = groups.into_iter().filter_map(Group::lns).collect();
        match lns.is_empty() {
            true => Err(()),
            false => Ok(Some(Box::new(Tunnelled::To(lns)))),
        }
    }
}

impl Group {
    /// Takes the values that it has not from the attributes without a tag.
    fn complete(&mut self, shared: &Self) {
        fn or<T: Clone>(own: &mut Option<T>, shared: &Option<T>) {
            if own.is_none() {
                own.clone_from(shared);
            }
        }
        or(&mut self.kind, &shared.kind);
        or(&mut self.medium, &shared.medium);
        or(&mut self.client, &shared.client);
        or(&mut self.password, &shared.password);
        or(&mut self.preference, &shared.preference);
        or(&mut self.assignment, &shared.assignment);
        or(&mut self.private_group, &shared.private_group);
        or(&mut self.client_name, &shared.client_name);
        or(&mut self.server_name, &shared.server_name);
    }

    /// The LNS, if this is a tunnel that can be opened here.
    fn lns(self) -> Option<Lns> {
        let server = self.server.flatten()?;
        let fits = match self.medium {
            None => true,
            Some(medium::IPV4) => server.is_ipv4(),
            Some(medium::IPV6) => server.is_ipv6(),
            Some(_) => false,
        };
        let of_family = self
            .client
            .is_none_or(|own| own.is_ipv4() == server.is_ipv4());
        if self.kind != Some(tunnel_type::L2TP) || !fits || !of_family {
            return None;
        }
        Some(Lns {
            tunnel: Arc::new(TunnelTo {
                server: SocketAddr::new(server, PORT),
                client: self.client,
                secret: self.password,
                client_name: self.client_name,
                server_name: self.server_name,
                assignment: self.assignment.unwrap_or_default(),
            }),
            preference: self.preference.unwrap_or(PREFERENCE_NONE),
            private_group: self.private_group.unwrap_or_default(),
        })
    }
}

fn text(value: &[u8]) -> Option<Box<str>> {
    core::str::from_utf8(value).ok().map(Into::into)
}

fn name(value: &[u8]) -> Option<Box<str>> {
    text(value).filter(|name| (1..=NAME_OCTETS_MAX).contains(&name.len()))
}

/// An address that a tunnel can lead to or come from.
fn address(value: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = core::str::from_utf8(value).ok()?.trim().parse().ok()?;
    (!address.is_unspecified() && !address.is_multicast()).then_some(address)
}

#[cfg(test)]
mod tests;
