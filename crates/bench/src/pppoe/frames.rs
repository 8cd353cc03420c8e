//! Ethernet's header of the hosts' frames. The last two bytes of a host's MAC address are its number.

use wire::pppoe::{Code, Mac};

/// The first bytes of the hosts' MAC addresses.
const HOST: [u8; 4] = [0x02, 0x00, 0x5e, 0x10];
/// The first bytes of the MAC addresses of a flood.
const STRANGER: [u8; 2] = [0x06, 0x5e];

/// The MAC address of a host.
pub(crate) fn host(number: u16) -> Mac {
    let ([a, b, c, d], [e, f]) = (HOST, number.to_be_bytes());
    Mac([a, b, c, d, e, f])
}

/// One of the MAC addresses of a flood.
pub(crate) fn stranger(number: u32) -> Mac {
    let ([a, b], [c, d, e, f]) = (STRANGER, number.to_be_bytes());
    Mac([a, b, c, d, e, f])
}

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    /// The host that it is for; `None` for another station.
    pub(crate) host: Option<u16>,
    pub(crate) from: Mac,
    /// The octets behind the EtherType.
    pub(crate) packet: &'a [u8],
}

/// Reads a frame; `None` if it is cut.
pub(crate) fn open(frame: &[u8]) -> Option<Opened<'_>> {
    let (head, packet) = frame.split_first_chunk::<14>()?;
    let [a, b, c, d, e, f, from @ ..] = *head;
    let from = *from.first_chunk()?;
    Some(Opened {
        host: ([a, b, c, d] == HOST).then_some(u16::from_be_bytes([e, f])),
        from: Mac(from),
        packet,
    })
}

/// Appends a frame with a PPPoE packet.
pub(crate) fn append(out: &mut Vec<u8>, from: Mac, to: Mac, packet: &[u8]) {
    let code = Code(packet.get(1).copied().unwrap_or(0));
    out.extend_from_slice(&to.0);
    out.extend_from_slice(&from.0);
    out.extend_from_slice(&code.ether_type().to_be_bytes());
    out.extend_from_slice(packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_to_a_host_names_it_and_one_to_a_stranger_does_not() {
        for (to, number) in [
            (host(0x0102), Some(0x0102)),
            (stranger(7), None),
            (Mac::BROADCAST, None),
        ] {
            let mut frame = Vec::new();
            append(&mut frame, host(9), to, &[0x11, 9, 0, 0, 0, 0]);
            let opened = open(&frame).unwrap();
            assert_eq!((opened.host, opened.from), (number, host(9)));
            assert_eq!(opened.packet, [0x11, 9, 0, 0, 0, 0]);
            assert_eq!(frame[12..14], [0x88, 0x63]);
            assert_eq!(open(&frame[..13]), None);
        }
    }
}
