//! What an Access-Accept grants (RFC 2865, section 4.2), or why it cannot be given: what authorises a service that is
//! not here is a rejection (section 1.1), and so is a value of an impossible length (section 5).

use core::net::Ipv4Addr;

use base::Duration;
use wire::radius::attribute::{
    ACCT_INTERIM_INTERVAL, CLASS, DELEGATED_IPV6_PREFIX, FILTER_ID, FRAMED_IP_ADDRESS,
    FRAMED_IPV6_PREFIX, FRAMED_IPV6_ROUTE, FRAMED_POOL, FRAMED_PROTOCOL, FRAMED_ROUTE,
    IDLE_TIMEOUT, MESSAGE_AUTHENTICATOR, PROXY_STATE, REPLY_MESSAGE, SERVICE_TYPE, SESSION_TIMEOUT,
    USER_NAME, framed_protocol, service,
};
use wire::radius::{Attribute, Packet};

use super::event::Rejection;
use super::route::{parse_ipv6_prefix, parse_route};
use crate::{Address, Profile};

/// The shortest Acct-Interim-Interval (RFC 2869, section 5.16).
pub const INTERIM_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// Octets of all Class attributes together: what a record has room for beside all else.
pub const CLASS_OCTETS_MAX: usize = 1_500;
/// Octets of a Reply-Message that are kept.
pub const MESSAGE_OCTETS_MAX: usize = 512;

/// What an Access-Accept grants.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Grant {
    /// To the subscriber.
    pub profile: Profile,
    /// Attributes that mean nothing here, and were ignored.
    pub ignored: u64,
    /// Whether Acct-Interim-Interval was below a minute, and raised.
    pub interval_raised: bool,
}

/// Reads what an Access-Accept grants. A time of zero is none; several Class and routes are kept in their order.
///
/// # Errors
/// It grants what cannot be given, or says it in a way that cannot be read.
pub fn read_accept(packet: &Packet<'_>) -> Result<Grant, Rejection> {
    let mut grant = Grant::default();
    for attribute in packet.attributes() {
        grant
            .take(attribute)
            .unwrap_or(Err(Rejection::Attribute(attribute.kind)))?;
    }
    Ok(grant)
}

impl Grant {
    /// Takes one attribute; `None` if its value cannot be honoured.
    fn take(&mut self, attribute: Attribute<'_>) -> Option<Result<(), Rejection>> {
        let profile = &mut self.profile;
        match attribute.kind {
            SERVICE_TYPE => match attribute.integer()? {
                service::FRAMED => {}
                other => return Some(Err(Rejection::Service(other))),
            },
            FRAMED_PROTOCOL => match attribute.integer()? {
                framed_protocol::PPP => {}
                other => return Some(Err(Rejection::Protocol(other))),
            },
            FRAMED_IP_ADDRESS => profile.address = read_address(attribute.address()?)?,
            FRAMED_POOL => profile.pool = Some(read_name(attribute)?),
            FRAMED_ROUTE | FRAMED_IPV6_ROUTE => {
                profile.routes.push(parse_route(attribute.text()?)?);
            }
            FRAMED_IPV6_PREFIX | DELEGATED_IPV6_PREFIX => {
                profile.routes.push(parse_ipv6_prefix(attribute.value)?);
            }
            // One filter is all a subscriber has. To leave a second one out would let through what it is to stop.
            FILTER_ID if profile.filter.is_some() => return None,
            FILTER_ID => profile.filter = Some(read_name(attribute)?),
            SESSION_TIMEOUT => profile.session_timeout = read_span(attribute.integer()?),
            IDLE_TIMEOUT => profile.idle_timeout = read_span(attribute.integer()?),
            ACCT_INTERIM_INTERVAL => {
                let interval = read_span(attribute.integer()?);
                self.interval_raised = interval.is_some_and(|span| span < INTERIM_INTERVAL_MIN);
                profile.interim_interval = interval.map(|span| span.max(INTERIM_INTERVAL_MIN));
            }
            CLASS => {
                profile.class.push(attribute.value.into());
                let octets = profile.class.iter().map(|class| class.len() + 2);
                if octets.sum::<usize>() > CLASS_OCTETS_MAX {
                    return None;
                }
            }
            USER_NAME => profile.name = Some(read_name(attribute)?),
            MESSAGE_AUTHENTICATOR | REPLY_MESSAGE | PROXY_STATE => {}
            _ => self.ignored += 1,
        }
        Some(Ok(()))
    }
}

fn read_address(address: Ipv4Addr) -> Option<Address> {
    match address {
        Ipv4Addr::BROADCAST => Some(Address::ItsOwn),
        address if address.octets() == [255, 255, 255, 254] => Some(Address::FromPool),
        address if address.is_unspecified() || address.is_multicast() || address.is_loopback() => {
            None
        }
        address => Some(Address::Fixed(address)),
    }
}

fn read_name(attribute: Attribute<'_>) -> Option<Box<str>> {
    let text = attribute.text()?;
    (!text.is_empty()).then(|| text.into())
}

fn read_span(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// The Reply-Messages of a packet, one after the other (RFC 2865, section 5.18); what is no UTF-8 in them is replaced.
#[must_use]
pub fn read_message(packet: &Packet<'_>) -> Option<Box<str>> {
    let mut octets = Vec::new();
    for attribute in packet.attributes() {
        if attribute.kind == REPLY_MESSAGE {
            let room = MESSAGE_OCTETS_MAX - octets.len();
            octets.extend_from_slice(&attribute.value[..attribute.value.len().min(room)]);
        }
    }
    (!octets.is_empty()).then(|| String::from_utf8_lossy(&octets).into())
}
