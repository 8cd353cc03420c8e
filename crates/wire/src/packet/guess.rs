//! Guesses whether bytes can be IP, PPP or Ethernet, where no header states it. An answer reads a bounded
//! number of bytes, so nested tunnels cost no more than the sum of their levels.

use super::{Frame, ethernet, ppp};

/// How many VLAN tags are skipped.
const TAGS_MAX: usize = 4;

/// Whether `frame` can be an IP packet with at most `padding_max` octets after it.
pub(super) fn is_ip(frame: Frame<'_>, padding_max: u32) -> bool {
    let length = match frame.octets.first().map(|octet| octet >> 4) {
        Some(4) => ipv4_length(frame.octets),
        Some(6) => ipv6_length(frame.octets),
        _ => None,
    };
    length
        .and_then(|length| frame.length.checked_sub(length))
        .is_some_and(|padding| padding <= padding_max)
}

fn ipv4_length(octets: &[u8]) -> Option<u32> {
    let head = octets.first_chunk::<20>()?;
    let header_length = u16::from(head[0] & 0x0f) * 4;
    let total = u16::from_be_bytes([head[2], head[3]]);
    (header_length >= 20 && total >= header_length).then_some(u32::from(total))
}

fn ipv6_length(octets: &[u8]) -> Option<u32> {
    let head = octets.first_chunk::<40>()?;
    Some(u32::from(u16::from_be_bytes([head[4], head[5]])) + 40)
}

/// Whether `frame` can be PPP with an IP packet.
pub(super) fn is_ppp(frame: Frame<'_>) -> bool {
    match ppp::protocol(ppp::without_address(frame)) {
        Ok((0x0021, rest)) => is_version(rest, 4) && is_ip(rest, 0),
        Ok((0x0057, rest)) => is_version(rest, 6) && is_ip(rest, 0),
        _ => false,
    }
}

/// Whether `frame` can be Ethernet with an IP packet.
pub(super) fn is_ethernet(frame: Frame<'_>) -> bool {
    // A short frame may be padded to 64 octets; a longer one may still have its FCS.
    let padding_max = if frame.length <= 64 { 46 } else { 4 };
    let Ok((head, mut rest)) = frame.split::<14>() else {
        return false;
    };
    let mut ethertype = u16::from_be_bytes([head[12], head[13]]);
    for _ in 0..TAGS_MAX {
        if !ethernet::is_vlan(ethertype) {
            break;
        }
        let Ok((tag, inner)) = rest.split::<4>() else {
            return false;
        };
        ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        rest = inner;
    }
    match ethertype {
        ethernet::IPV4 => is_version(rest, 4) && is_ip(rest, padding_max),
        ethernet::IPV6 => is_version(rest, 6) && is_ip(rest, padding_max),
        _ => false,
    }
}

fn is_version(frame: Frame<'_>, version: u8) -> bool {
    frame
        .octets
        .first()
        .is_some_and(|octet| octet >> 4 == version)
}
