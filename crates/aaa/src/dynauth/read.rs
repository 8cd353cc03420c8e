//! Parses a Disconnect-Request. All of its attributes are mandatory (RFC 5176, section 2.3).

use core::net::{IpAddr, Ipv6Addr};

use wire::radius::attribute::{
    ACCT_SESSION_ID, ACCT_TERMINATE_CAUSE, CALLED_STATION_ID, CALLING_STATION_ID, CLASS,
    EVENT_TIMESTAMP, FRAMED_IP_ADDRESS, MESSAGE_AUTHENTICATOR, NAS_IDENTIFIER, NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS, NAS_PORT, NAS_PORT_ID, PROXY_STATE, REPLY_MESSAGE, USER_NAME,
    error_cause::{
        INVALID_REQUEST, MISSING_ATTRIBUTE, NAS_IDENTIFICATION_MISMATCH, UNSUPPORTED_ATTRIBUTE,
    },
};
use wire::radius::{Attribute, Packet};

use super::Selection;
use crate::radius::Nas;

/// The content of a Disconnect-Request.
#[derive(Default)]
pub(super) struct Wanted {
    /// The sessions to end.
    pub(super) selection: Selection,
    /// Class attributes for the sessions' Stop records.
    pub(super) class: Vec<Box<[u8]>>,
}

/// Parses a Disconnect-Request.
///
/// # Errors
/// The Error-Cause of the NAK.
pub(super) fn read_disconnect(packet: &Packet<'_>, nas: &Nas) -> Result<Wanted, u32> {
    let mut wanted = Wanted::default();
    let selection = &mut wanted.selection;
    for attribute in packet.attributes() {
        match attribute.kind {
            NAS_IDENTIFIER | NAS_IP_ADDRESS | NAS_IPV6_ADDRESS => check_nas(attribute, nas)?,
            USER_NAME => put(&mut selection.user, octets(attribute))?,
            ACCT_SESSION_ID => put(&mut selection.session, octets(attribute))?,
            NAS_PORT => put(&mut selection.port, attribute.integer())?,
            NAS_PORT_ID => put(&mut selection.port_id, octets(attribute))?,
            FRAMED_IP_ADDRESS => put(&mut selection.address, attribute.address())?,
            CALLING_STATION_ID => put(&mut selection.calling, octets(attribute))?,
            CALLED_STATION_ID => put(&mut selection.called, octets(attribute))?,
            CLASS => wanted.class.push(attribute.value.into()),
            EVENT_TIMESTAMP
            | MESSAGE_AUTHENTICATOR
            | PROXY_STATE
            | REPLY_MESSAGE
            | ACCT_TERMINATE_CAUSE => {}
            _ => return Err(UNSUPPORTED_ATTRIBUTE),
        }
    }
    if wanted.selection.is_empty() {
        return Err(MISSING_ATTRIBUTE);
    }
    Ok(wanted)
}

/// Checks that a NAS attribute in a request names us.
fn check_nas(attribute: Attribute<'_>, nas: &Nas) -> Result<(), u32> {
    let is_ours = match attribute.kind {
        NAS_IDENTIFIER => {
            let own = nas.identifier.as_deref().map(str::as_bytes);
            own == Some(attribute.value)
        }
        NAS_IP_ADDRESS => {
            let address = attribute.address().ok_or(INVALID_REQUEST)?;
            nas.address == Some(IpAddr::V4(address))
        }
        _ => {
            let octets: [u8; 16] = attribute.value.try_into().map_err(|_| INVALID_REQUEST)?;
            nas.address == Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
    };
    match is_ours {
        true => Ok(()),
        false => Err(NAS_IDENTIFICATION_MISMATCH),
    }
}

fn octets(attribute: Attribute<'_>) -> Option<Box<[u8]>> {
    (!attribute.value.is_empty()).then(|| attribute.value.into())
}

/// Stores a value; each attribute may occur once (RFC 5176, section 3.6), with a valid value.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), u32> {
    match (value, &place) {
        (Some(value), None) => {
            *place = Some(value);
            Ok(())
        }
        (None, _) | (_, Some(_)) => Err(INVALID_REQUEST),
    }
}
