//! Reads the NAS and session identification attributes of a request (RFC 5176, section 3).

use core::net::{IpAddr, Ipv6Addr};

use wire::radius::Attribute;
use wire::radius::attribute::{
    ACCT_SESSION_ID, CALLED_STATION_ID, CALLING_STATION_ID, FRAMED_INTERFACE_ID, FRAMED_IP_ADDRESS,
    FRAMED_IPV6_PREFIX, NAS_IDENTIFIER, NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, NAS_PORT, NAS_PORT_ID,
    USER_NAME,
};

use super::{Cause, Selection};
use crate::radius::Nas;
use crate::radius::route::parse_ipv6_prefix;

/// Takes an attribute that identifies the NAS or the session. Returns whether it is one.
///
/// # Errors
/// The Error-Cause of the NAK.
pub(super) fn identify(
    attribute: Attribute<'_>,
    nas: &Nas,
    selection: &mut Selection,
) -> Result<bool, Cause> {
    match attribute.kind {
        NAS_IDENTIFIER | NAS_IP_ADDRESS | NAS_IPV6_ADDRESS => check_nas(attribute, nas)?,
        USER_NAME => put(&mut selection.user, octets(attribute))?,
        ACCT_SESSION_ID => put(&mut selection.session, octets(attribute))?,
        NAS_PORT => put(&mut selection.port, attribute.integer())?,
        NAS_PORT_ID => put(&mut selection.port_id, octets(attribute))?,
        FRAMED_IP_ADDRESS => put(&mut selection.address, attribute.address())?,
        FRAMED_INTERFACE_ID => put(&mut selection.interface, attribute.value.try_into().ok())?,
        FRAMED_IPV6_PREFIX => {
            let prefix = parse_ipv6_prefix(attribute.value).ok_or(Cause::InvalidRequest)?;
            selection.prefixes.push(prefix);
        }
        CALLING_STATION_ID => put(&mut selection.calling, octets(attribute))?,
        CALLED_STATION_ID => put(&mut selection.called, octets(attribute))?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Checks that a NAS attribute in a request names us.
fn check_nas(attribute: Attribute<'_>, nas: &Nas) -> Result<(), Cause> {
    let is_ours = match attribute.kind {
        NAS_IDENTIFIER => {
            let own = nas.identifier.as_deref().map(str::as_bytes);
            own == Some(attribute.value)
        }
        NAS_IP_ADDRESS => {
            let address = attribute.address().ok_or(Cause::InvalidRequest)?;
            nas.address == Some(IpAddr::V4(address))
        }
        _ => {
            let octets = attribute.value.try_into();
            let octets: [u8; 16] = octets.map_err(|_| Cause::InvalidRequest)?;
            nas.address == Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
    };
    is_ours.then_some(()).ok_or(Cause::NasMismatch)
}

fn octets(attribute: Attribute<'_>) -> Option<Box<[u8]>> {
    (!attribute.value.is_empty()).then(|| attribute.value.into())
}

/// Stores a value; each attribute may occur once (RFC 5176, section 3.6), with a valid value.
pub(super) fn put<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), Cause> {
    match (value, &place) {
        (Some(value), None) => {
            *place = Some(value);
            Ok(())
        }
        (None, _) | (_, Some(_)) => Err(Cause::InvalidRequest),
    }
}
