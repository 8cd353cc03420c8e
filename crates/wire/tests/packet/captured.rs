//! Frames of real captures, from `testdata/capture/frames`.

use std::net::IpAddr;
use std::path::Path;

use wire::link::LinkType;
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;

use crate::build::hex;

struct Captured {
    link: LinkType,
    length: u32,
    /// The expected segment.
    tcp: String,
    octets: Vec<u8>,
}

fn read(path: &Path) -> Captured {
    let text = std::fs::read_to_string(path).expect("readable");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.expect("has its fields").trim().to_owned()
    };
    let is_hex = |line: &&str| line.starts_with(|c: char| c.is_ascii_hexdigit());
    let octets: Vec<&str> = text.lines().filter(is_hex).collect();
    Captured {
        link: LinkType(field("link ").parse().expect("a number")),
        length: field("length ").parse().expect("a number"),
        tcp: field("tcp "),
        octets: hex(&octets.concat()),
    }
}

fn shown(packet: &Packet<'_>) -> String {
    let tcp = Tcp::parse(packet).expect("a segment");
    let address = |octets: [u8; 16]| IpAddr::from(octets).to_canonical();
    format!(
        "{} {} {} {} {} {} {}",
        address(packet.source),
        address(packet.destination),
        tcp.source_port,
        tcp.destination_port,
        tcp.sequence,
        tcp.acknowledgment,
        tcp.payload_length
    )
}

#[test]
fn frames_of_real_captures_have_their_segments() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/capture/frames");
    let mut found = 0;
    for entry in std::fs::read_dir(root).expect("there") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let frame = read(&path);
        let mut packet = Packet::new();
        decode(frame.link, &frame.octets, frame.length, &mut packet)
            .unwrap_or_else(|skip| panic!("{}: {skip}", path.display()));
        assert_eq!(shown(&packet), frame.tcp, "{}", path.display());
        found += 1;
    }
    assert!(found >= 11, "{found} frames");
}
