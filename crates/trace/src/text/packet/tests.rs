use super::*;
use crate::text::Numeric;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use wire::packet::decode;

/// The text of a packet that has no link layer.
fn shown(octets: &[u8], hex: bool, bases: [Option<u32>; 2]) -> Option<String> {
    let mut found = Packet::new();
    decode(LinkType::RAW, octets, octets.len() as u32, &mut found).ok()?;
    let print = Print {
        names: &Numeric,
        zone: &TimeZone::UTC,
        hex,
        checksums: true,
    };
    let printed = Printed {
        number: 3,
        time: 1_000_000_000,
        frame: None,
        packet: &found,
        bases,
    };
    let mut out = String::new();
    packet(&mut out, &printed, &print).unwrap();
    Some(out)
}

/// A TCP header with ports, sequence and acknowledgment numbers, ACK, and options of `words` times
/// four bytes.
fn tcp(words: u8) -> Vec<u8> {
    let mut header = vec![
        0,
        23,
        0x9c,
        0x40,
        0,
        0,
        0,
        110,
        0,
        0,
        0,
        205,
        0x50 + words * 16,
        0x10,
    ];
    header.extend([1, 0, 0xab, 0xcd, 0, 0]);
    header
}

/// An IPv4 packet whose header has these options.
fn ipv4(options: &[u8], protocol: u8, content: &[u8]) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let length = words * 4 + content.len();
    let mut packet = vec![
        0x40 + words as u8,
        0,
        0,
        length as u8,
        0,
        9,
        0,
        0,
        64,
        protocol,
        0,
        0,
    ];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(options);
    packet.extend(content);
    packet
}

#[test]
fn options_of_ip_are_told_one_by_one() {
    // Record route of two addresses, of which one is filled in; one unknown; the end.
    let options = [7, 11, 8, 192, 0, 2, 1, 0, 0, 0, 0, 0x99, 3, 1, 1, 0];
    let text = shown(&ipv4(&options, 200, &[]), true, [None; 2]).unwrap();
    let expected = "\t Options: 16 bytes\n\
        \t    IP option 7 (copy:N  class:ctrl  number:7)\n\
        \t      Record Route:  len: 11  ptr:8\n\
        \t        1: 192.0.2.1\n\
        \t        2: xxxxxxxxxxx\n\
        \t    IP option 153 (copy:Y  class:ctrl  number:25)\n\
        \t      Unknown Option 153, len: 3\n\
        \t    IP option 1 (copy:N  class:ctrl  number:1)\n\
        \t      PADDING\n\
        \t    IP option 0 (copy:N  class:ctrl  number:0)\n\
        \t      EOL\n\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn sequence_numbers_are_as_sent_or_relative() {
    let packet = ipv4(&[], 6, &tcp(0));
    let lines = |hex, bases| {
        let text = shown(&packet, hex, bases).unwrap();
        let lines: Vec<String> = text
            .lines()
            .filter(|line| line.contains("SEQ:") || line.contains("ACK:"))
            .map(|line| line.trim().to_owned())
            .collect();
        lines.join(" ")
    };
    assert_eq!(lines(true, [None; 2]), "SEQ: 0x0000006e ACK: 0x000000cd");
    assert_eq!(lines(false, [None; 2]), "SEQ: 110 ACK: 205");
    let bases = [Some(100), Some(206)];
    assert_eq!(lines(false, bases), "SEQ: 10(R) ACK: 4294967295(R)");
    assert_eq!(
        lines(true, [Some(100), None]),
        "SEQ: 0x0000000a(R) ACK: 0x000000cd"
    );
}

#[test]
fn options_of_tcp_that_are_not_known_are_told_by_number() {
    let mut segment = tcp(4);
    // Echo, CC, one unknown, and one that reaches too far.
    segment.extend([6, 6, 0, 0, 1, 0, 11, 3, 7, 30, 4, 0, 0, 1, 99, 9]);
    let text = shown(&ipv4(&[], 6, &segment), true, [None; 2]).unwrap();
    let line = text.lines().find(|line| line.contains("OPTS"));
    assert_eq!(
        line,
        Some("\t    OPTS: 16 bytes\t ECHO(256) UNKN(op:11,len:3) UNKN(op:30,len:4)")
    );
}

proptest! {
    #[test]
    fn any_packet_can_be_printed(
        head in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60]),
        mut octets in prop::collection::vec(any::<u8>(), 20..100),
        protocol in prop::sample::select(vec![0u8, 6, 17, 43, 60]),
        hex in any::<bool>(),
    ) {
        octets[0] = head;
        let at = if head == 0x60 { 6 } else { 9 };
        octets[at] = protocol;
        let length = octets.len() as u16;
        (octets[2], octets[3]) = (0, length as u8);
        if head == 0x60 {
            (octets[4], octets[5]) = (0, length.saturating_sub(40) as u8);
        }
        if let Some(text) = shown(&octets, hex, [None; 2]) {
            prop_assert!(text.starts_with("Packet 3\n\tSaved Length: ") && text.ends_with('\n'));
        }
    }
}
