//! Marking a packet "congestion experienced" (RFC 3168 5), and the IPv4 header checksum with it (RFC 1624).
//!
//! Left out: marking packets inside a tunnel; the tunnel's end copies the mark inwards (RFC 6040).

use crate::segment::ip_offset;

/// Both bits of the ECN field.
const CE: u8 = 0b11;

/// Marks the IP packet in an Ethernet frame if its sender supports ECN; returns whether it is marked now.
pub fn mark_frame(frame: &mut [u8]) -> bool {
    ip_offset(frame).is_some_and(|offset| mark(&mut frame[offset..]))
}

/// Marks an IPv4 or IPv6 packet if its sender supports ECN; returns whether it is marked now.
pub fn mark(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => mark_v4(packet),
        Some(6) if packet.len() >= 40 => {
            // The traffic class spans the first two octets.
            let capable = (packet[1] >> 4) & CE != 0;
            if capable {
                packet[1] |= CE << 4;
            }
            capable
        }
        _ => false,
    }
}

fn mark_v4(packet: &mut [u8]) -> bool {
    let old = packet[1];
    if old & CE == 0 {
        return false;
    }
    packet[1] = old | CE;
    // RFC 1624: the new complement is the old one plus the old word's complement plus the new word.
    let change = u32::from(packet[1] - old);
    let sum = u32::from(!u16::from_be_bytes([packet[10], packet[11]])) + change;
    let sum = (sum >> 16) + (sum & 0xffff);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    fn ipv4(tos: u8, identification: u16) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, 20];
        packet.extend(identification.to_be_bytes());
        packet.extend([0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        let sum = !checksum::sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn ipv4_s_checksum_stays_right_whatever_it_was() {
        for identification in 0..=u16::MAX {
            for ecn in 1..4 {
                let mut packet = ipv4(0xb8 | ecn, identification);
                assert!(mark(&mut packet));
                assert_eq!(packet[1], 0xbb);
                assert_eq!(checksum::ip_ok(&packet), Some(true));
            }
        }
    }

    #[test]
    fn a_sender_that_does_not_understand_is_left_alone() {
        let mut packet = ipv4(0xb8, 1);
        let before = packet.clone();
        assert!(!mark(&mut packet));
        assert_eq!(packet, before);
        let mut packet = [0; 40];
        packet[0] = 0x6b;
        packet[1] = 0x80;
        assert!(!mark(&mut packet));
        packet[1] = 0xa5;
        assert!(mark(&mut packet));
        assert_eq!(packet[..2], [0x6b, 0xb5]);
    }

    #[test]
    fn a_frame_s_packet_is_found_behind_tags_and_nothing_else_is_touched() {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 7, 8, 0]);
        frame.extend(ipv4(2, 9));
        assert!(mark_frame(&mut frame));
        assert_eq!(frame[19], 3);
        let mut arp = [0xff; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert!(!mark_frame(&mut arp));
        for length in 0..frame.len() {
            let _ = mark_frame(&mut frame[..length].to_vec());
        }
    }
}
