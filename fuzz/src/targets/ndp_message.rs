//! Messages of neighbour discovery: options, lengths, addresses.

use wire::ip::Header;
use wire::ndp::{self, Message, NdpError, Option};

/// Takes the ICMPv6 message, behind an octet that chooses the addresses. The checksum is made right.
///
/// # Panics
/// If a message that is read is none by its length, or its options are longer than it.
pub fn target(data: &[u8]) {
    let Some((&how, content)) = data.split_first() else {
        return;
    };
    let addresses = [
        "fe80::1",
        "fe80::2",
        "ff02::1",
        "ff02::2",
        "::",
        "2001:db8::7",
        "ff02::1:ff00:1",
    ];
    let address = |place: u8| addresses[usize::from(place) % addresses.len()].parse();
    let (Ok(source), Ok(destination)) = (address(how & 15), address(how >> 4)) else {
        return;
    };
    let mut packet = Vec::new();
    ndp::write_icmp([source, destination], 255, &mut packet, |out| {
        let start = out.len();
        out.extend_from_slice(content);
        // Room for the checksum.
        out.resize(out.len().max(start + 4), 0);
        out[start + 2..start + 4].fill(0);
    });
    let header = Header::read(&packet).expect("a packet");
    let read = Message::read(&header, &packet);
    assert!(!matches!(
        read,
        Err(NdpError::Checksum | NdpError::NotIcmp | NdpError::HopLimit(_))
    ));
    if let Ok(Message::RouterAdvertisement(_, options)) = read {
        let mut octets = 0;
        for option in options {
            octets += match option {
                Option::Prefix(_) => 32,
                Option::Mtu(_) => 8,
                Option::Servers(_, servers) => 8 + servers.len() * 16,
                Option::Other(_, content) => 2 + content.len(),
            };
        }
        assert_eq!(octets, packet.len() - 40 - 16, "options fill the message");
    }
    let mut flipped = packet.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    assert_eq!(Message::read(&header, &flipped), Err(NdpError::Checksum));
    // The packet itself may be anything, too.
    if let Ok(header) = Header::read(data) {
        let _ = Message::read(&header, data);
    }
}
