//! Tunnels and sessions as values: the fields that a successor needs, in both directions.
//!
//! Each record has one list of fields, which writes the record and reads it ([`base::snapshot`]). What follows from other
//! fields is absent: links, table entries, timers, and the number of a secret. [`tunnel`] and [`session`] have the lists;
//! `endpoint/restore.rs` puts what was read into the tables.
//!
//! A shared secret is never among the octets. A tunnel has a check value of its secret instead.

use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use base::Route;
use base::snapshot::{Codec, Fault, Part, ReadError};

mod message;
pub(crate) mod session;
pub(crate) mod tunnel;

pub(crate) use session::SessionValue;
pub(crate) use tunnel::TunnelValue;

/// Why a value was not restored. The endpoint is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The octets are no value.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// Another record has its place in the table.
    #[error("its place in the table is in use")]
    PlaceInUse,
    /// Another record has an id that it had: ours, the peer's or the config id.
    #[error("its {0} is in use")]
    IdInUse(&'static str),
    /// A session's tunnel is not here, or is closing.
    #[error("its tunnel is not here")]
    UnknownTunnel,
    /// Its secret is neither the one that was passed, nor one of the configuration.
    #[error("its secret is not known")]
    UnknownSecret,
    /// Its protocol version is switched off.
    #[error("its protocol version is switched off")]
    VersionOff,
    /// A table is full; the text names the limit.
    #[error("the limit {0} is reached")]
    LimitReached(&'static str),
    /// What an endpoint has once can only be restored into one without tunnels.
    #[error("the endpoint has tunnels")]
    NotEmpty,
}

impl Refused {
    /// A field has a value that it cannot have in this endpoint.
    pub(crate) const fn value(part: &'static str, field: &'static str) -> Self {
        let fault = Fault::Value(field);
        Self::Unreadable(ReadError { part, fault })
    }
}

/// The longest value of an AVP.
const VALUE_MAX: usize = wire::l2tp::VALUE_LEN_MAX;

/// The most octets of a text: a value of an AVP in which each octet has become a replacement character.
const TEXT_MAX: usize = 3 * VALUE_MAX;

fn text<C: Codec>(codec: &mut C, number: u8, name: &'static str, value: &mut Box<str>) {
    let mut string = core::mem::take(value).into_string();
    codec.text(number, name, &mut string, TEXT_MAX);
    *value = string.into();
}

/// A text that may be missing.
fn maybe_text<C: Codec>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut Option<Box<str>>,
) {
    let mut list = value.take().map(|text| text.into_string().into_bytes());
    codec.maybe_bytes(number, name, &mut list, TEXT_MAX);
    match list.map(String::from_utf8).transpose() {
        Ok(string) => *value = string.map(Into::into),
        Err(_) => codec.refuse(),
    }
}

/// A route in a record; an address that is missing is refused.
struct RouteValue<'a>(&'a mut Route);

impl Part for RouteValue<'_> {
    const NAME: &'static str = "route";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let route = &mut *self.0;
        let (mut peer, mut port) = (Some(route.peer.ip()), route.peer.port());
        let (mut scope, mut flow) = match route.peer {
            SocketAddr::V4(_) => (0, 0),
            SocketAddr::V6(peer) => (peer.scope_id(), peer.flowinfo()),
        };
        codec.address(1, "peer", &mut peer);
        if C::READS && peer.is_none() {
            codec.refuse();
        }
        codec.number(2, "port", &mut port);
        codec.number(3, "scope", &mut scope);
        codec.number(4, "flow", &mut flow);
        codec.address(5, "local", &mut route.local);
        codec.number(6, "socket", &mut route.socket);
        if !C::READS {
            return;
        }
        match peer {
            Some(IpAddr::V6(peer)) => {
                route.peer = SocketAddrV6::new(peer, port, flow, scope).into();
            }
            Some(IpAddr::V4(peer)) => {
                route.peer = SocketAddr::new(peer.into(), port);
                if (scope, flow) != (0, 0) {
                    codec.refuse();
                }
            }
            None => {}
        }
    }
}
