//! Parses an Access-Accept (RFC 2865, section 4.2; RFC 3162, section 2). An Access-Accept that authorises an unavailable service is
//! treated as a rejection (section 1.1), as is a value of an invalid length (section 5).

use core::net::{Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU64;

use base::Duration;
use wire::radius::attribute::{
    ACCT_INTERIM_INTERVAL, CLASS, DELEGATED_IPV6_PREFIX, DELEGATED_IPV6_PREFIX_POOL,
    DNS_SERVER_IPV6_ADDRESS, FILTER_ID, FRAMED_INTERFACE_ID, FRAMED_IP_ADDRESS,
    FRAMED_IPV6_ADDRESS, FRAMED_IPV6_POOL, FRAMED_IPV6_PREFIX, FRAMED_IPV6_ROUTE, FRAMED_POOL,
    FRAMED_PROTOCOL, FRAMED_ROUTE, IDLE_TIMEOUT, MESSAGE_AUTHENTICATOR, PROXY_STATE, REPLY_MESSAGE,
    SERVICE_TYPE, SESSION_TIMEOUT, STATEFUL_IPV6_ADDRESS_POOL, USER_NAME, VENDOR_SPECIFIC,
    framed_protocol, service,
};
use wire::radius::{Attribute, Packet};

use super::event::Rejection;
use super::queue::{LeftOut, QueueAttributes, Reader};
use super::route::{parse_ipv6_prefix, parse_route};
use super::tunnels::{self, Salted};
use crate::{Address, Prefix, Profile, Walled};

/// The shortest Acct-Interim-Interval (RFC 2869, section 5.16).
pub const INTERIM_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The most octets of all Class attributes together: the room that a record has beside its other attributes.
pub const CLASS_OCTETS_MAX: usize = 1_500;
/// The most octets of a Reply-Message that are kept.
pub const MESSAGE_OCTETS_MAX: usize = 512;

/// The most IPv6 name servers of a subscriber.
pub const DNS_SERVERS_MAX: usize = 3;

/// The content of an Access-Accept.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Grant {
    /// The subscriber's settings.
    pub profile: Profile,
    /// Attributes ignored because they have no meaning here.
    pub ignored: u64,
    /// Whether Acct-Interim-Interval was below a minute and has been raised.
    pub interval_raised: bool,
    /// Attributes about queues whose values cannot be read.
    pub left_out: Vec<LeftOut>,
}

/// Parses an Access-Accept; without `salted` it may have no salted attribute. A timeout of zero means none; multiple Class attributes and routes keep their
/// order.
///
/// # Errors
/// It grants something unavailable, or has an unreadable value. An unreadable value about queues is one only if `queue`
/// is strict.
pub fn read_accept(
    packet: &Packet<'_>,
    queue: QueueAttributes,
    salted: Option<Salted<'_>>,
) -> Result<Grant, Rejection> {
    let mut grant = Grant::default();
    let mut reader = Reader::new(queue);
    let mut tunnels = tunnels::Reader::default();
    for attribute in packet.attributes() {
        match tunnels.take(attribute, salted) {
            Some(true) => continue,
            Some(false) => {}
            None => return Err(Rejection::Attribute(attribute.kind)),
        }
        grant
            .take(attribute, &mut reader)
            .unwrap_or(Err(Rejection::Attribute(attribute.kind)))?;
    }
    grant.profile.queue = reader.finish();
    grant.profile.garden = match reader.garden.take() {
        Some(Walled::In(name)) => Some(name),
        Some(Walled::Out) | None => None,
    };
    grant.profile.tunnel = tunnels.finish().map_err(|()| Rejection::Tunnel)?;
    grant.left_out = reader.left_out;
    match grant.left_out.first() {
        Some(first) if queue.strict => Err(Rejection::Queue(first.attribute)),
        _ => Ok(grant),
    }
}

impl Grant {
    /// Applies one attribute; `None` if its value cannot be honoured.
    fn take(
        &mut self,
        attribute: Attribute<'_>,
        queue: &mut Reader,
    ) -> Option<Result<(), Rejection>> {
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
            FRAMED_IPV6_PREFIX
            | DELEGATED_IPV6_PREFIX
            | FRAMED_IPV6_ADDRESS
            | FRAMED_IPV6_POOL
            | DELEGATED_IPV6_PREFIX_POOL
            | STATEFUL_IPV6_ADDRESS_POOL
            | FRAMED_INTERFACE_ID
            | DNS_SERVER_IPV6_ADDRESS => read_ipv6(attribute, profile)?,
            FILTER_ID if attribute.text().is_some_and(|text| queue.filter_id(text)) => {}
            VENDOR_SPECIFIC => self.ignored += queue.vendor_specific(attribute.value),
            // A subscriber has only one filter. Ignoring a second one would let through packets that it should
            // block.
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

/// Applies an attribute about IPv6 prefixes and addresses. A second prefix of a kind is a network behind the
/// subscriber. `None` if the value cannot be honoured.
fn read_ipv6(attribute: Attribute<'_>, profile: &mut Profile) -> Option<()> {
    let ipv6 = profile.ipv6.get_or_insert_default();
    let address = || Some(Ipv6Addr::from(<[u8; 16]>::try_from(attribute.value).ok()?));
    let pool = match attribute.kind {
        FRAMED_IPV6_POOL => Some(&mut ipv6.pool),
        DELEGATED_IPV6_PREFIX_POOL => Some(&mut ipv6.delegated_pool),
        STATEFUL_IPV6_ADDRESS_POOL => Some(&mut ipv6.address_pool),
        _ => None,
    };
    if let Some(pool) = pool {
        *pool = Some(read_name(attribute)?);
        return Some(());
    }
    let (place, prefix) = match attribute.kind {
        FRAMED_INTERFACE_ID => {
            let octets = <[u8; 8]>::try_from(attribute.value).ok()?;
            ipv6.interface = Some(NonZeroU64::new(u64::from_be_bytes(octets))?);
            return Some(());
        }
        DNS_SERVER_IPV6_ADDRESS => {
            let address = address()?;
            if ipv6.dns.len() < DNS_SERVERS_MAX {
                ipv6.dns.push(address);
            }
            return Some(());
        }
        FRAMED_IPV6_ADDRESS => (&mut ipv6.address, Prefix::new(address()?.into(), 128)?),
        FRAMED_IPV6_PREFIX => (&mut ipv6.prefix, parse_ipv6_prefix(attribute.value)?),
        _ => (&mut ipv6.delegated, parse_ipv6_prefix(attribute.value)?),
    };
    match place {
        None => *place = Some(prefix),
        Some(_) => profile.routes.push(prefix),
    }
    Some(())
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

/// The packet's Reply-Messages, concatenated (RFC 2865, section 5.18); invalid UTF-8 is replaced.
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
