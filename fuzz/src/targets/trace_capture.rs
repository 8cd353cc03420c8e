//! Bytes as a capture file, through reader and decoder to the analyser.

use capfile::{Block, Reader};
use trace::{Analyzer, Config, Finished, Nobody, Segment};
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;

use super::trace_checks::{check, thawed};

/// Takes a capture file.
///
/// # Panics
/// If counters contradict each other, or depend on which connections were cached.
pub fn target(data: &[u8]) {
    let whole = analyse(data, 4096);
    for connection in thawed(&whole) {
        check(&connection);
    }
    assert_eq!(whole, analyse(data, 1));
}

fn analyse(data: &[u8], hot: usize) -> Vec<Finished> {
    let Ok(mut reader) = Reader::new(data) else {
        return Vec::new();
    };
    let mut analyzer = Analyzer::new(Config {
        hot,
        ..Config::default()
    });
    let mut block = Block::new();
    let (mut number, mut clock, mut segments) = (0, i64::MIN, 0u64);
    while reader
        .read_block(&mut block)
        .expect("memory gives no error")
    {
        for record in block.records() {
            number += 1;
            clock = clock.max(record.time_ns);
            let mut packet = Packet::new();
            let octets = block.bytes(record);
            if decode(record.link, octets, record.length, &mut packet).is_err() {
                continue;
            }
            let Ok(tcp) = Tcp::parse(&packet) else {
                continue;
            };
            segments += 1;
            let segment = Segment::new(number, record.time_ns, clock, &packet, &tcp, 0);
            analyzer.packet(&segment, packet.layers.as_slice(), &mut Nobody);
        }
    }
    analyzer.finish();
    let mut finished = analyzer.take_finished();
    finished.sort_by_key(|finished| finished.first_packet);
    let packets: u64 = thawed(&finished).iter().map(|one| one.packets).sum();
    assert_eq!(packets, segments);
    finished
}
