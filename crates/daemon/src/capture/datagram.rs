//! Rebuilds the IP and UDP headers of a tunnel's datagram for a capture. The kernel does not pass
//! these headers to the daemon, so they are made from the addresses.

use std::net::{IpAddr, SocketAddr};

use wire::checksum;

const IPV4_OCTETS: usize = 20;
const UDP_OCTETS: usize = 8;
const UDP: u8 = 17;
const TTL: u8 = 64;

/// Appends the packet of a datagram. Appends nothing if the addresses are of different families,
/// which no datagram has.
pub(super) fn append(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
    let start = out.len();
    let length = UDP_OCTETS + datagram.len();
    let udp = match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (IPV4_OCTETS + length) as u16;
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&total.to_be_bytes());
            // Identification 0 and Don't Fragment, as RFC 6864 recommends for unfragmented packets.
            out.extend_from_slice(&[0, 0, 0x40, 0, TTL, UDP, 0, 0]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
            let sum = !checksum::sum(&out[start..]);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
            12
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
            out.extend_from_slice(&[UDP, TTL]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
            8
        }
        _ => return,
    };
    let addresses = start + udp..out.len();
    let header = out.len();
    for field in [from.port(), to.port(), length as u16, 0] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    out.extend_from_slice(datagram);
    let pseudo = checksum::pseudo_sum(&out[addresses], UDP, length);
    let (sum, carry) = checksum::sum(&out[header..]).overflowing_add(pseudo);
    // Zero means that there is no checksum (RFC 768).
    let sum = match !(sum + u16::from(carry)) {
        0 => 0xffff,
        sum => sum,
    };
    out[header + 6..header + 8].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: &str, to: &str, datagram: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        append(
            &mut out,
            from.parse().unwrap(),
            to.parse().unwrap(),
            datagram,
        );
        out.split_off(6)
    }

    /// The sum over a datagram with its checksum is all ones (RFC 1071).
    fn is_right(addresses: &[u8], udp: &[u8]) -> bool {
        let pseudo = u32::from(checksum::pseudo_sum(addresses, UDP, udp.len()));
        let sum = pseudo + u32::from(checksum::sum(udp));
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn headers_say_addresses_ports_lengths_and_have_right_sums() {
        let packet = of("192.0.2.1:1701", "198.51.100.7:40000", b"odd");
        assert_eq!(packet.len(), 31);
        assert_eq!(packet[2..4], 31_u16.to_be_bytes());
        assert_eq!(checksum::sum(&packet[..20]), 0xffff);
        assert_eq!(packet[12..20], [192, 0, 2, 1, 198, 51, 100, 7]);
        assert_eq!(packet[20..24], [0x06, 0xa5, 0x9c, 0x40]);
        assert!(is_right(&packet[12..20], &packet[20..]));

        let packet = of("[2001:db8::1]:1701", "[2001:db8::2]:1701", b"even");
        assert_eq!((packet[0], packet[6], packet.len()), (0x60, UDP, 52));
        assert_eq!(packet[4..6], 12_u16.to_be_bytes());
        assert!(is_right(&packet[8..40], &packet[40..]));
    }

    #[test]
    fn a_sum_of_zero_is_written_as_all_ones() {
        // Searches for a payload of two bytes that gives a checksum of zero.
        let zero = (0..=u16::MAX).find(|octets| {
            let packet = of("0.0.0.0:1", "0.0.0.0:2", &octets.to_be_bytes());
            packet[26..28] == [0xff, 0xff]
        });
        let packet = of("0.0.0.0:1", "0.0.0.0:2", &zero.unwrap().to_be_bytes());
        assert!(is_right(&packet[12..20], &packet[20..]));
    }

    #[test]
    fn addresses_of_two_families_give_nothing() {
        assert!(of("192.0.2.1:1", "[::1]:1", b"x").is_empty());
    }
}
