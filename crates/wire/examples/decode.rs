//! Finds the TCP segment in a frame of L2TP traffic, and lists the encapsulations around it.
//!
//! `cargo run -p headend-wire --example decode`
#![forbid(unsafe_code)]

use std::net::IpAddr;

use wire::l2tp::{DataV2, Packet as L2tp};
use wire::link::LinkType;
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;

/// An IPv4 header without options.
fn ipv4(protocol: u8, hosts: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut out = vec![
        0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0,
    ];
    for host in hosts {
        out.extend([192, 0, 2, host]);
    }
    out.extend(payload);
    out
}

fn main() {
    let mut segment = vec![
        0xc0, 0x00, 0x00, 0x50, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x02, 0x20, 0, 0, 0, 0, 0,
    ];
    segment[13] = 0x18;
    segment.extend(b"GET / HTTP/1.1\r\n");
    // PPP with its protocol number, in an L2TPv2 data message, in UDP.
    let ppp = [&[0xff, 0x03, 0x00, 0x21], &ipv4(6, [7, 8], &segment)[..]].concat();
    let mut data = Vec::new();
    DataV2 {
        tunnel: 12,
        session: 34,
        ..DataV2::default()
    }
    .emit(&mut data);
    data.extend(&ppp);
    let length = (8 + data.len() as u16).to_be_bytes();
    let udp = [
        &[0x06, 0xa5, 0x06, 0xa5, length[0], length[1], 0, 0],
        &data[..],
    ]
    .concat();
    let frame = ipv4(17, [1, 2], &udp);

    match wire::l2tp::parse(&data) {
        Ok(L2tp::DataV2(data)) => {
            println!("tunnel {}, session {}", data.tunnel, data.session)
        }
        other => println!("{other:?}"),
    }
    let mut packet = Packet::new();
    decode(LinkType::RAW, &frame, frame.len() as u32, &mut packet).expect("an IP packet");
    for layer in packet.layers.as_slice() {
        println!("in {layer:?}");
    }
    let tcp = Tcp::parse(&packet).expect("a TCP segment");
    let address = |octets: [u8; 16]| IpAddr::from(octets).to_canonical();
    println!(
        "{}:{} -> {}:{}, {} bytes of data",
        address(packet.source),
        tcp.source_port,
        address(packet.destination),
        tcp.destination_port,
        tcp.payload_length
    );
    assert_eq!((tcp.destination_port, tcp.payload_length), (80, 16));
}
