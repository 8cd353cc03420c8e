//! Writes the golden packets of `testdata/l2tp` to standard output as a pcap
//! file (raw IPv4, UDP port 1701), for a dissector to read:
//!
//! ```text
//! cargo run -p headend-wire --example goldens_pcap > goldens.pcap
//! tshark -o l2tp.shared_secret:lantern -V -r goldens.pcap
//! ```
#![forbid(unsafe_code)]

#[path = "../tests/l2tp/golden.rs"]
mod golden;

use std::io::{self, Write as _};

use golden::Golden;

const LINKTYPE_RAW: u32 = 101;
const L2TP_PORT: u16 = 1701;
const LAC: [u8; 4] = [192, 0, 2, 1];
const LNS: [u8; 4] = [192, 0, 2, 2];

fn main() -> io::Result<()> {
    let mut out = Vec::new();
    out.extend(0xa1b2_c3d4_u32.to_le_bytes());
    out.extend(2_u16.to_le_bytes());
    out.extend(4_u16.to_le_bytes());
    out.extend([0; 8]);
    out.extend(65_535_u32.to_le_bytes());
    out.extend(LINKTYPE_RAW.to_le_bytes());
    for (second, golden) in golden::all().iter().enumerate() {
        let packet = ipv4_udp(golden);
        let len = packet.len() as u32;
        for field in [second as u32, 0, len, len] {
            out.extend(field.to_le_bytes());
        }
        out.extend(packet);
        eprintln!("{} {}", second + 1, golden.name);
    }
    io::stdout().lock().write_all(&out)
}

/// An IPv4 packet with a UDP datagram without checksum.
fn ipv4_udp(golden: &Golden) -> Vec<u8> {
    let udp_len = 8 + golden.octets.len() as u16;
    let (source, destination) = if golden.from_lac {
        (LAC, LNS)
    } else {
        (LNS, LAC)
    };
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp_len).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    let checksum = checksum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    for field in [L2TP_PORT, L2TP_PORT, udp_len, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(&golden.octets);
    packet
}

/// The Internet checksum, RFC 1071, of an even number of octets.
fn checksum(octets: &[u8]) -> u16 {
    let words = octets
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
