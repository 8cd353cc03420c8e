//! Files cut anywhere and read in any portions.

use capfile::{Fault, OpenError};

use crate::support::{BIG, Dribble, LITTLE, Whole, read, read_whole};
use crate::{erf, etherpeek, pcap, pcapng, snoop, tsh};

/// A small file of every format, and octets before its first record.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut pcap = pcap::header(BIG, 0xa1b2_c3d4, (2, 4), 1);
    let mut pcapng = pcapng::section(LITTLE);
    pcapng.extend(pcapng::interface(LITTLE, 1, 0, &[]));
    let mut snoop = snoop::header(2, 4);
    let mut epeek_5 = etherpeek::header(5, 0, 0);
    let mut epeek_7 = etherpeek::header(7, 0, 0);
    let (mut erf, mut tsh) = (Vec::new(), Vec::new());
    for n in 1..6u8 {
        let octets: Vec<u8> = (0..n * 7).collect();
        let captured = u32::from(n) * 7;
        pcap.extend(pcap::record(BIG, [5, 5, captured, 99], &octets));
        pcapng.extend(pcapng::enhanced(LITTLE, 0, 5, &octets));
        snoop.extend(snoop::record(99, 5, 5, &octets));
        epeek_5.extend(etherpeek::record_5(captured as u16, 0, 5, &octets));
        let mut padded = octets.clone();
        padded.resize(octets.len().next_multiple_of(2), 0);
        epeek_7.extend(etherpeek::record_7(captured as u16, 0, 5, &padded));
        erf.extend(erf::record(2, 99, &octets));
        tsh.extend(tsh::record(5, 5, 5, 99));
    }
    vec![
        ("pcap", pcap),
        ("pcapng", pcapng),
        ("snoop", snoop),
        ("EtherPeek 5", epeek_5),
        ("EtherPeek 7", epeek_7),
        ("ERF", erf),
        ("TSH", tsh),
    ]
}

#[test]
fn a_file_cut_at_any_octet_gives_a_prefix_of_its_packets() {
    for (name, file) in files() {
        let whole = read_whole(&file);
        assert_eq!((whole.packets.len(), whole.first), (5, None), "{name}");
        let mut given_before = 0;
        for len in 0..=file.len() {
            let Ok(cut) = read(&file[..len]) else {
                assert_eq!(given_before, 0, "{name}: once known, a format stays known");
                continue;
            };
            let given = cut.packets.len();
            assert_eq!(cut.packets, whole.packets[..given], "{name} {len}");
            assert!(given >= given_before);
            given_before = given;
            check_cut(&cut, len as u64, name);
        }
        assert_eq!(given_before, 5);
    }
}

/// Either the cut is between records, or the fault is reported at the start of the record that was
/// cut.
fn check_cut(cut: &Whole, len: u64, name: &str) {
    if let Some((offset, fault)) = cut.first {
        assert_eq!(fault, Fault::Truncated, "{name} {len}");
        assert_eq!(cut.faults, [(Fault::Truncated, 1)]);
        let last = cut.packets.last().map_or(0, |packet| packet.offset);
        assert!(last <= offset && offset < len, "{name}: {offset} of {len}");
    }
}

#[test]
fn the_portions_a_file_comes_in_make_no_difference() {
    for (name, file) in files() {
        let whole = read_whole(&file);
        for step in 1..50 {
            let octets = &file[..];
            let again = read(Dribble { octets, step }).expect("as before");
            assert_eq!(again, whole, "{name} by {step}");
        }
    }
}

#[test]
fn a_file_longer_than_many_blocks_has_its_packets_once_and_in_order() {
    let mut file = pcap::header(LITTLE, 0xa1b2_c3d4, (2, 4), 1);
    let mut offsets = Vec::new();
    for n in 0..20_000u32 {
        offsets.push(file.len() as u64);
        let captured = (n * 37) % 1500;
        let octets = vec![n as u8; captured as usize];
        file.extend(pcap::record(LITTLE, [n, 0, captured, captured], &octets));
    }
    let whole = read_whole(&file);
    assert_eq!(whole.packets.len(), 20_000);
    assert_eq!(whole.first, None);
    for (n, (packet, offset)) in whole.packets.iter().zip(offsets).enumerate() {
        assert_eq!(packet.time_ns, n as i64 * 1_000_000_000);
        assert_eq!(packet.offset, offset);
        assert_eq!(packet.octets, vec![n as u8; (n * 37) % 1500]);
    }
}

#[test]
fn what_is_no_file_of_packets_is_said_to_be_of_no_known_format() {
    for octets in [
        &b"a"[..],
        b"The quick brown fox jumps over the lazy dog, again and again and again.",
        &[0; 5000],
        &[0xff; 5000],
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ] {
        assert!(matches!(read(octets), Err(OpenError::UnknownFormat)));
    }
}
