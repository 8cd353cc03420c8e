//! Reads values of messages, and finds faults in them, without any state.
//!
//! Implements parts of RFC 2661, sections 4.2 and 7.1.

use wire::l2tp::{Attribute, Fault, Message, Version};

use crate::end::{SessionEnd, TunnelEnd};
use crate::session::Cookie;

/// The fault of a message as the end of a tunnel.
pub(super) fn unreadable(message: &Message<'_>) -> Result<(), TunnelEnd> {
    if let Some((vendor, attribute)) = message.unrecognised_mandatory() {
        return Err(TunnelEnd::UnknownAvp { vendor, attribute });
    }
    match message.fault() {
        None => Ok(()),
        Some(Fault::NoMessageType) => Err(TunnelEnd::BadValue("no Message Type AVP")),
        Some(Fault::ShortAvp { .. }) => Err(TunnelEnd::BadLength("AVP shorter than its header")),
        Some(Fault::PastEnd { .. }) => Err(TunnelEnd::BadLength("AVP past the end of the message")),
        Some(Fault::BadLength(attribute)) => Err(TunnelEnd::BadLength(attribute.name())),
        Some(Fault::Hidden(_)) => Err(TunnelEnd::BadValue("hidden AVP that cannot be read")),
    }
}

/// The same as the end of a session.
pub(super) fn unreadable_call(message: &Message<'_>) -> Result<(), SessionEnd> {
    unreadable(message).map_err(|reason| match reason {
        TunnelEnd::UnknownAvp { vendor, attribute } => SessionEnd::UnknownAvp { vendor, attribute },
        TunnelEnd::BadLength(what) => SessionEnd::BadLength(what),
        TunnelEnd::BadValue(what) => SessionEnd::BadValue(what),
        _ => SessionEnd::BadValue("AVP"),
    })
}

/// The id that the peer assigned; 0 if it did not.
pub(super) fn assigned_id(message: &Message<'_>) -> u32 {
    match message.version() {
        Version::V2 => message.u16(Attribute::AssignedTunnelId).map(u32::from),
        Version::V3 => message.u32(Attribute::AssignedControlConnectionId),
    }
    .unwrap_or(0)
}

/// A peer's name for people: at most 128 octets, without control characters.
pub(super) fn printable(name: &[u8]) -> Box<str> {
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    if name.chars().any(char::is_control) {
        return name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect::<String>()
            .into();
    }
    name.into()
}

/// The id that the sender of a message gave to its session; 0 if it did not.
pub(super) fn peer_session_id(message: &Message<'_>) -> u32 {
    match message.version() {
        Version::V2 => message.u16(Attribute::AssignedSessionId).map(u32::from),
        Version::V3 => message.u32(Attribute::LocalSessionId),
    }
    .unwrap_or(0)
}

/// Checks values of L2TPv3 options that cannot be met (RFC 3931 5.4.4); `has_sublayer` says whether the peer
/// has already requested a sublayer.
pub(super) fn check_options(message: &Message<'_>, has_sublayer: bool) -> Result<(), SessionEnd> {
    let sublayer = message.u16(Attribute::L2SpecificSublayer);
    let sublayer = sublayer.unwrap_or(u16::from(has_sublayer));
    let sequencing = message.u16(Attribute::DataSequencing).unwrap_or(0);
    let cookie = message.get(Attribute::AssignedCookie);
    if cookie.is_some_and(|value| Cookie::from_wire(value).is_none()) {
        return Err(SessionEnd::BadLength("Assigned Cookie"));
    }
    if sublayer > 1 {
        return Err(SessionEnd::BadValue("L2-Specific Sublayer"));
    }
    if sequencing > 2 {
        return Err(SessionEnd::BadValue("Data Sequencing"));
    }
    if sequencing != 0 && sublayer == 0 {
        return Err(SessionEnd::NoSublayer);
    }
    Ok(())
}
