//! Which header's length applies, fragments, and extension headers.

use wire::link::LinkType;
use wire::packet::{Fragment, Packet, Skip, decode};
use wire::tcp::{Tcp, TcpError};
use wire::udp::Udp;

use crate::build::{ethernet, hex, ipv4, ipv6, join, plain, segment, udp};
use crate::whole;

#[test]
fn padding_of_the_link_is_left_off() {
    let bare = ipv4(6, &segment()[..32]);
    let mut without_payload = bare.clone();
    without_payload[2..4].copy_from_slice(&52_u16.to_be_bytes());
    let frame = join(&ethernet(0x0800, &without_payload), &[0xee; 6]);
    let packet = whole(LinkType::ETHERNET, &frame).expect("IPv4");
    assert_eq!((packet.network.len(), packet.transport.len()), (52, 32));
    assert_eq!(Tcp::parse(&packet).expect("TCP").payload_length, 0);
    let frame = join(&ethernet(0x86dd, &ipv6(6, &segment())), &[0xee; 6]);
    let packet = whole(LinkType::ETHERNET, &frame).expect("IPv6");
    assert_eq!((packet.network.len(), packet.transport_length), (90, 50));
}

#[test]
fn the_ip_length_counts_beyond_the_frame_s() {
    let mut frame = plain();
    frame[16..18].copy_from_slice(&40_052_u16.to_be_bytes());
    let packet = whole(LinkType::ETHERNET, &frame).expect("IPv4");
    let tcp = Tcp::parse(&packet).expect("TCP");
    assert_eq!((tcp.payload_length, tcp.payload.len()), (40_000, 18));
}

#[test]
fn an_ip_length_of_0_is_the_frame_s() {
    let mut frame = plain();
    frame[16..18].copy_from_slice(&[0, 0]);
    let mut packet = Packet::new();
    // 70,000 octets of payload, 18 of them captured.
    let sent = 14 + 20 + 32 + 70_000;
    decode(LinkType::ETHERNET, &frame, sent, &mut packet).expect("IPv4");
    let tcp = Tcp::parse(&packet).expect("TCP");
    assert_eq!((tcp.payload_length, tcp.payload.len()), (70_000, 18));

    let mut frame = ethernet(0x86dd, &ipv6(6, &segment()));
    frame[18..20].copy_from_slice(&[0, 0]);
    decode(LinkType::ETHERNET, &frame, sent + 20, &mut packet).expect("IPv6");
    let tcp = Tcp::parse(&packet).expect("TCP");
    assert_eq!((tcp.payload_length, tcp.payload.len()), (70_000, 18));
}

#[test]
fn a_jumbo_payload_option_has_the_length() {
    // RFC 2675 2: type, length, and the payload with this header.
    let mut option = hex("0600 c204");
    option.extend((8 + 32 + 70_000_u32).to_be_bytes());
    let mut frame = ipv6(0, &join(&option, &segment()));
    frame[4..6].copy_from_slice(&[0, 0]);
    let packet = whole(LinkType::RAW, &frame).expect("IPv6");
    assert_eq!(Tcp::parse(&packet).expect("TCP").payload_length, 70_000);
    // A PadN option before it is skipped; without the option, the packet is as long as the frame.
    let mut padded = hex("0601 0104 00000000 0000 c204");
    padded.extend((16 + 32 + 70_000_u32).to_be_bytes());
    padded.truncate(16);
    let mut frame = ipv6(0, &join(&padded, &segment()));
    frame[4..6].copy_from_slice(&[0, 0]);
    let packet = whole(LinkType::RAW, &frame).expect("IPv6");
    assert_eq!(Tcp::parse(&packet).expect("TCP").payload_length, 70_000);
    let mut frame = ipv6(0, &join(&hex("0600 0104 00000000"), &segment()));
    frame[4..6].copy_from_slice(&[0, 0]);
    let packet = whole(LinkType::RAW, &frame).expect("IPv6");
    assert_eq!(Tcp::parse(&packet).expect("TCP").payload_length, 18);
}

#[test]
fn extension_headers_are_stepped_over() {
    let chain = hex("2b00 0104 00000000 3c00 0000 00000000 3300 0104 00000000
         8701 0000 00000001 00000001
         8b00 0000 00000000 8c00 0000 00000000 2c00 0000 00000000 0600 0000 00000007");
    let frame = ipv6(0, &join(&chain, &segment()));
    let packet = whole(LinkType::IPV6, &frame).expect("IPv6");
    assert_eq!((packet.protocol, packet.fragment), (6, Fragment::Whole));
    assert_eq!(Tcp::parse(&packet).expect("TCP").payload_length, 18);
    // A header that is longer than the packet; one that was not captured.
    let frame = ipv6(60, &hex("0609 0000 00000000"));
    assert_eq!(whole(LinkType::IPV6, &frame), Err(Skip::BadHeader));
    let frame = ipv6(60, &join(&hex("0600 0000 00000000"), &segment()));
    let packet = whole(LinkType::IPV6, &frame[..44]).expect("IPv6");
    assert_eq!(packet.protocol, 60);
    assert_eq!(Tcp::parse(&packet), Err(TcpError::NotTcp));
}

#[test]
fn only_a_first_fragment_has_a_segment() {
    for (flags, fragment) in [
        ([0x20, 0x00], Fragment::First),
        ([0x20, 0x01], Fragment::Later),
        ([0x00, 0x01], Fragment::Later),
        ([0x40, 0x00], Fragment::Whole),
    ] {
        let mut frame = plain();
        frame[20..22].copy_from_slice(&flags);
        let packet = whole(LinkType::ETHERNET, &frame).expect("IPv4");
        assert_eq!(packet.fragment, fragment);
        let later = fragment == Fragment::Later;
        let tcp = Tcp::parse(&packet);
        assert_eq!(tcp == Err(TcpError::LaterFragment), later);
    }
    for (field, fragment) in [
        ("0001", Fragment::First),
        ("0008", Fragment::Later),
        ("0009", Fragment::Later),
        ("0000", Fragment::Whole),
    ] {
        let header = hex(&format!("0600 {field} 00000007"));
        let frame = ipv6(44, &join(&header, &segment()));
        let packet = whole(LinkType::RAW, &frame).expect("IPv6");
        assert_eq!((packet.fragment, packet.protocol), (fragment, 6));
        assert_eq!(packet.transport, segment());
    }
}

/// A tunnel's first fragment has the inner headers, which state the length as sent.
#[test]
fn a_tunnel_s_first_fragment_is_looked_through_and_a_later_one_is_not() {
    let inner = ipv4(6, &segment());
    let mut first = ipv4(4, &inner[..60]);
    first[6..8].copy_from_slice(&[0x20, 0]);
    let packet = whole(LinkType::RAW, &first).expect("IPv4");
    assert_eq!((packet.layers.len(), packet.fragment), (1, Fragment::Whole));
    let tcp = Tcp::parse(&packet).expect("TCP");
    assert_eq!((tcp.payload_length, tcp.payload.len()), (18, 8));
    let mut later = ipv4(4, &inner);
    later[6..8].copy_from_slice(&[0x00, 8]);
    let packet = whole(LinkType::RAW, &later).expect("IPv4");
    assert_eq!((packet.layers.len(), packet.protocol), (0, 4));
}

#[test]
fn headers_that_contradict_themselves_are_bad() {
    let mut short = ipv4(6, &segment());
    short[3] = 19;
    short[2] = 0;
    assert_eq!(whole(LinkType::RAW, &short), Err(Skip::BadHeader));
    let mut low = ipv4(6, &segment());
    low[0] = 0x44;
    assert_eq!(whole(LinkType::RAW, &low), Err(Skip::BadHeader));
    assert_eq!(
        whole(LinkType::IPV6, &ipv4(6, &segment())),
        Err(Skip::BadHeader)
    );
    assert_eq!(
        whole(LinkType::IPV4, &ipv6(6, &segment())),
        Err(Skip::BadHeader)
    );
}

#[test]
fn options_of_ipv4_are_stepped_over() {
    let mut frame = ipv4(6, &join(&[1, 1, 1, 0], &segment()));
    frame[0] = 0x46;
    let packet = whole(LinkType::RAW, &frame).expect("IPv4");
    assert_eq!(packet.transport, segment());
    assert_eq!(packet.transport_length, 50);
}

#[test]
fn a_datagram_has_its_ports_and_payload() {
    let frame = ipv4(17, &join(&udp(53, 4000, b"answer"), &[0xee; 3]));
    let packet = whole(LinkType::RAW, &frame).expect("IPv4");
    let udp = Udp::parse(&packet).expect("UDP");
    assert_eq!((udp.source_port, udp.destination_port), (53, 4000));
    assert_eq!(
        (udp.payload, udp.payload_length, udp.length),
        (&b"answer"[..], 6, 14)
    );
}
