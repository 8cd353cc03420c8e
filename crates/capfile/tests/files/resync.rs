//! Files with junk in the middle: the packets outside of the junk are read.

use capfile::{Fault, Gap};
use proptest::prelude::*;

use crate::support::{BIG, Dribble, LITTLE, Order, read, read_strict, read_whole};
use crate::{pcap, pcapng};

const PCAP: u32 = 0xa1b2_c3d4;

/// A file of packets a few ms apart, and where each record begins and ends.
struct File {
    octets: Vec<u8>,
    records: Vec<(usize, usize)>,
}

fn file_of(pcapng: bool, order: Order, packets: &[Vec<u8>]) -> File {
    let mut octets = match pcapng {
        true => [pcapng::section(order), pcapng::interface(order, 1, 0, &[])].concat(),
        false => pcap::header(order, PCAP, (2, 4), 1),
    };
    let mut records = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let (start, millis) = (octets.len(), number as u32 * 7);
        let (seconds, micros) = (1_700_000_000 + millis / 1000, millis % 1000 * 1000);
        let length = packet.len() as u32;
        octets.extend(match pcapng {
            true => pcapng::enhanced(order, 0, u64::from(seconds) * 1_000_000, packet),
            false => pcap::record(order, [seconds, micros, length, length], packet),
        });
        records.push((start, octets.len()));
    }
    File { octets, records }
}

fn packets() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 14..200), 8..40)
}

/// What is done to the bytes in the middle.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Overwrite,
    Insert,
    Remove,
    Zero,
}

fn damages() -> impl Strategy<Value = Damage> {
    prop::sample::select(vec![
        Damage::Overwrite,
        Damage::Insert,
        Damage::Remove,
        Damage::Zero,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_outside_of_the_junk_are_read_in_whatever_portions(
        pcapng: bool,
        big: bool,
        packets in packets(),
        damage in damages(),
        place in 0.0..1.0f64,
        junk in prop::collection::vec(any::<u8>(), 1..900),
        step in 1usize..300,
    ) {
        let order = if big { BIG } else { LITTLE };
        let File { mut octets, records } = file_of(pcapng, order, &packets);
        let from = records[0].0;
        let at = from + ((octets.len() - from) as f64 * place) as usize;
        let end = match damage {
            Damage::Insert => at,
            _ => octets.len().min(at + junk.len()),
        };
        let new = match damage {
            Damage::Overwrite => junk[..end - at].to_vec(),
            Damage::Insert => junk,
            Damage::Remove => Vec::new(),
            Damage::Zero => vec![0; end - at],
        };
        octets.splice(at..end, new);
        let whole = read_whole(&octets);
        let read_packets = whole.octets();
        // Where bytes are missing, a record that lost its end takes as many bytes of those after it.
        let longest = packets.iter().map(Vec::len).max().unwrap_or(0);
        let behind = if matches!(damage, Damage::Remove) { end + longest } else { end };
        let apart = |&(&(start, stop), _): &(&(usize, usize), &Vec<u8>)| stop <= at || start >= behind;
        let expected = records.iter().zip(&packets).filter(apart);
        // In order, and possibly with damaged packets among them.
        let mut rest = read_packets.iter();
        for (_, packet) in expected {
            prop_assert!(rest.any(|read| read == packet), "{} of {} packets; damage from {at} to {end} of {}, records {:?}, {:?} {:?} {:?}", read_packets.len(), packets.len(), octets.len(), records, whole.first, whole.gaps, whole.faults);
        }
        let octets = &octets[..];
        prop_assert_eq!(read(Dribble { octets, step }).expect("as before"), whole);
    }
}

/// Ten packets, the fourth of which has a damaged header.
fn damaged(pcapng: bool) -> (File, usize) {
    let packets: Vec<Vec<u8>> = (0..10).map(|number| vec![number; 60]).collect();
    let mut file = file_of(pcapng, LITTLE, &packets);
    let at = file.records[3].0;
    file.octets[at + 4..at + 16].fill(0xff);
    (file, at)
}

#[test]
fn the_skipped_bytes_are_reported_with_their_place() {
    for (pcapng, fault) in [
        (false, Fault::RecordTooLong),
        (true, Fault::BadRecordLength),
    ] {
        let (file, at) = damaged(pcapng);
        let whole = read_whole(&file.octets);
        assert_eq!(whole.packets.len(), 9);
        let (start, end) = file.records[3];
        assert_eq!(whole.first, Some((at as u64, fault)));
        let gap = Gap {
            offset: start as u64,
            length: (end - start) as u64,
        };
        assert_eq!(whole.gaps, [gap]);
        let strict = read_strict(&file.octets);
        assert_eq!((strict.packets.len(), strict.gaps.len()), (3, 0));
    }
}

#[test]
fn files_put_one_after_the_other_are_read_although_the_second_header_is_a_fault() {
    let packets: Vec<Vec<u8>> = (0..5).map(|number| vec![number; 60]).collect();
    let mut file = file_of(false, LITTLE, &packets).octets;
    let length = file.len();
    // A year earlier.
    file.extend(pcap::header(LITTLE, PCAP, (2, 4), 1));
    for number in 0..5 {
        file.extend(pcap::record(
            LITTLE,
            [1_668_000_000, number, 60, 60],
            &[9; 60],
        ));
    }
    let whole = read_whole(&file);
    assert_eq!(whole.packets.len(), 10);
    let gap = Gap {
        offset: length as u64,
        length: 24,
    };
    assert_eq!(whole.gaps, [gap]);
}

#[test]
fn zeros_at_the_end_of_a_file_end_it() {
    for pcapng in [false, true] {
        let packets: Vec<Vec<u8>> = (0..5).map(|number| vec![number; 60]).collect();
        let mut file = file_of(pcapng, BIG, &packets).octets;
        let length = file.len() as u64;
        file.extend([0; 5000]);
        let whole = read_whole(&file);
        assert_eq!((whole.packets.len(), whole.gaps.len()), (5, 0));
        assert_eq!(whole.first, Some((length, Fault::BadRecordLength)));
    }
}
