//! IP in IP (RFC 2003), as much as the experiment needs: one tunnel for all that a host sends, to where it sends.
//!
//! The kernel here may have none, so that packets get their outer header in user space. Left out: fragments, and the
//! way back, which is not loaded.

use std::net::Ipv4Addr;

use reactor::port::Frames;
use wire::checksum;

/// Octets of the outer header.
pub(super) const HEADER: usize = 20;
/// Octets of Ethernet's header.
const ETHERNET: usize = 14;
/// IP in IP's protocol number.
const PROTOCOL: u8 = 4;
/// The tunnel's near end.
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// An IPv4 packet with an outer header, to the destination that it has.
pub(super) fn wrapped(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER + packet.len()).unwrap_or(u16::MAX);
    let mut out = vec![0; HEADER];
    out[0] = 0x45;
    // RFC 2983 and RFC 6040: the octet as it is.
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

/// The packet in a tunnel; `None` when it is in none.
pub(super) fn unwrapped(packet: &[u8]) -> Option<&[u8]> {
    (*packet.first()? == 0x45 && *packet.get(9)? == PROTOCOL).then(|| packet.get(HEADER..))?
}

/// Puts the packet of a frame into the tunnel, if `host` sent it.
pub(super) fn wrap_frame(frames: &mut Frames, handle: u32, host: Ipv4Addr) {
    let frame = frames.get(handle);
    let is_theirs =
        frame.get(12..15) == Some(&[0x08, 0x00, 0x45]) && frame.get(26..30) == Some(&host.octets());
    if is_theirs {
        let out = [&frame[..ETHERNET], &wrapped(&frame[ETHERNET..])].concat();
        fill(frames, handle, &out);
    }
}

/// Takes the packet of a frame out of the tunnel, if it is in one.
pub(super) fn unwrap_frame(frames: &mut Frames, handle: u32) {
    let frame = frames.get(handle);
    let packet = frame.get(ETHERNET..).and_then(unwrapped);
    if let (Some([0x08, 0x00]), Some(packet)) = (frame.get(12..14), packet) {
        let out = [&frame[..ETHERNET], packet].concat();
        fill(frames, handle, &out);
    }
}

fn fill(frames: &mut Frames, handle: u32, frame: &[u8]) {
    frames.fill(handle, |room| {
        let length = frame.len().min(room.len());
        room[..length].copy_from_slice(&frame[..length]);
        length
    });
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // Cut short: no panic, whatever it is taken for.
            let _ = unwrapped(&outer[..cut.max(1)]).map(<[u8]>::len);
        }
    }
}
