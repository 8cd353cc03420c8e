//! IP in IP (RFC 2003), as far as the experiment needs it: one tunnel for all packets that a host
//! sends, to their own destination.
//!
//! The kernel may lack it, so the outer header is added in user space. Left out: fragments, and the
//! reverse direction, which carries no load.

use std::net::Ipv4Addr;

use wire::checksum;

use super::topology::B;

/// Bytes of the outer header.
pub(super) const HEADER: usize = 20;
/// Bytes of Ethernet's header.
const ETHERNET: usize = 14;
/// IP in IP's protocol number.
const PROTOCOL: u8 = 4;
/// The tunnel's near end.
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// Adds an outer header to an IPv4 packet, with the packet's own destination.
pub(super) fn wrapped(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER + packet.len()).unwrap_or(u16::MAX);
    let mut out = vec![0; HEADER];
    out[0] = 0x45;
    // RFC 2983 and RFC 6040: the octet is copied.
    out[1] = packet.get(1).copied().unwrap_or(0);
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out[6] = 0x40;
    out[8] = 64;
    out[9] = PROTOCOL;
    out[12..16].copy_from_slice(&NEAR.octets());
    if let Some(to) = packet.get(16..20) {
        out[16..20].copy_from_slice(to);
    }
    let sum = !checksum::sum(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend_from_slice(packet);
    out
}

/// The inner packet; `None` if there is no tunnel header.
pub(super) fn unwrapped(packet: &[u8]) -> Option<&[u8]> {
    (*packet.first()? == 0x45 && *packet.get(9)? == PROTOCOL).then(|| packet.get(HEADER..))?
}

/// B's frame with its packet tunnelled; `None` for another host's.
pub(super) fn wrapped_frame(frame: &[u8]) -> Option<Vec<u8>> {
    let is_theirs =
        frame.get(12..15) == Some(&[0x08, 0x00, 0x45]) && frame.get(26..30) == Some(&B.octets());
    is_theirs.then(|| [&frame[..ETHERNET], &wrapped(&frame[ETHERNET..])].concat())
}

/// A frame with the inner packet; `None` if its packet is not tunnelled.
pub(super) fn unwrapped_frame(frame: &[u8]) -> Option<Vec<u8>> {
    let (head, packet) = frame.split_at_checked(ETHERNET)?;
    let inner = unwrapped(packet).filter(|_| head[12..] == [0x08, 0x00])?;
    Some([head, inner].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_b_alone_are_put_into_the_tunnel() {
        let mut frame = vec![0; 60];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        assert_eq!(wrapped_frame(&frame), None);
        frame[26..30].copy_from_slice(&B.octets());
        let outer = wrapped_frame(&frame).expect("a frame of B");
        assert_eq!(outer.len(), 80);
        assert_eq!(unwrapped_frame(&outer), Some(frame.clone()));
        assert_eq!(
            (unwrapped_frame(&frame), unwrapped_frame(&[0; 13])),
            (None, None)
        );
    }

    #[test]
    fn what_went_into_the_tunnel_comes_out_and_nothing_else_does() {
        let mut packet = vec![0; 48];
        packet[0] = 0x45;
        packet[1] = 0xb8;
        packet[9] = 17;
        packet[16..20].copy_from_slice(&[198, 51, 100, 1]);
        let outer = wrapped(&packet);
        assert_eq!((outer.len(), outer[1], outer[9]), (68, 0xb8, PROTOCOL));
        assert_eq!(checksum::ip_ok(&outer), Some(true));
        assert_eq!(unwrapped(&outer), Some(&packet[..]));
        assert_eq!(unwrapped(&packet), None);
        for cut in 0..HEADER {
            // Truncated input must not panic.
            let _ = unwrapped(&outer[..cut.max(1)]).map(<[u8]>::len);
        }
    }
}
