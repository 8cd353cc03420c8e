//! What replies say to a subscriber that authenticates by MS-CHAP version 2 (RFC 2548, section 2) or EAP (RFC 3579).

use base::Duration;
use wire::ppp::mschap;
use wire::radius::attribute::{EAP_MESSAGE, SESSION_TIMEOUT, STATE, VENDOR_SPECIFIC};
use wire::radius::vendor::{MICROSOFT, VendorSpecific, microsoft};
use wire::radius::{Attributes, Packet};

use super::request::Proof;

/// How a subscriber proves itself, as far as replies depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// PAP, CHAP with MD5, or not at all.
    Plain,
    /// MS-CHAP version 2.
    MsChapV2,
    /// EAP.
    Eap,
}

impl Way {
    pub(super) fn of(proof: &Proof<'_>) -> Self {
        match proof {
            Proof::Pap { .. } | Proof::Chap { .. } => Self::Plain,
            Proof::MsChapV2 { .. } => Self::MsChapV2,
            Proof::Eap { .. } => Self::Eap,
        }
    }
}

/// Whether a packet has an EAP-Message, and so must be signed (RFC 3579, section 3.2).
pub(super) fn has_eap(packet: &Packet<'_>) -> bool {
    packet.find(EAP_MESSAGE).is_some()
}

/// The EAP packet of a reply: its EAP-Messages, concatenated (RFC 3579, section 3.1).
pub(super) fn eap_message(packet: &Packet<'_>) -> Option<Box<[u8]>> {
    let parts = packet.attributes().filter(|one| one.kind == EAP_MESSAGE);
    let octets: Vec<u8> = parts.flat_map(|part| part.value).copied().collect();
    (!octets.is_empty()).then(|| octets.into())
}

/// What the next request of a conversation must contain: the server's index, and its State (RFC 3579, section 2.1).
pub(super) fn state(packet: &Packet<'_>, server: u8) -> Box<[u8]> {
    let mut state = vec![server];
    if let Some(attribute) = packet.find(STATE) {
        state.extend_from_slice(attribute.value);
    }
    state.into()
}

/// How long a challenged subscriber has to answer (RFC 3579, section 2.6.5): Session-Timeout, other than zero.
pub(super) fn wait(packet: &Packet<'_>) -> Option<Duration> {
    let seconds = packet.find(SESSION_TIMEOUT)?.integer()?;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// The authenticator response in a reply's MS-CHAP2-Success, and the text after it.
pub(super) fn success(packet: &Packet<'_>) -> Option<Box<str>> {
    let value = microsoft_value(packet.attributes(), microsoft::CHAP2_SUCCESS)?;
    let message = value.get(1..)?;
    let (response, _) = mschap::parse_success(message)?;
    core::str::from_utf8(response).ok().map(Into::into)
}

/// The error code and the text in a reply's MS-CHAP-Error, which is an identifier and a Failure's message.
pub(super) fn error<'a>(packet: &Packet<'a>) -> Option<(u32, &'a [u8])> {
    let value = microsoft_value(packet.attributes(), microsoft::CHAP_ERROR)?;
    // Some servers leave out the identifier.
    let message = match value {
        [b'E', b'=', ..] => value,
        _ => value.get(1..)?,
    };
    mschap::parse_failure(message)
}

fn microsoft_value<'a>(attributes: Attributes<'a>, kind: u8) -> Option<&'a [u8]> {
    let of_vendor = attributes.filter(|attribute| attribute.kind == VENDOR_SPECIFIC);
    let parsed = of_vendor.filter_map(|attribute| VendorSpecific::parse(attribute.value));
    let mut values = parsed
        .filter(|parsed| parsed.vendor == MICROSOFT)
        .flat_map(|parsed| parsed.attributes().flatten());
    values.find(|one| one.kind == kind).map(|one| one.value)
}
