//! QUIC packets and other datagrams: what is read lies within the datagram, flows of any datagrams stay within their
//! limits, and each has a result.

use trace::FlowKey;
use trace::json::why;
use trace::udp::report::Report;
use trace::udp::sequence::STREAMS_MAX;
use trace::udp::{Datagram, Flows};
use wire::quic::{CryptoFrames, Packet};

/// Takes datagrams, each after two octets of its length; the highest bit is its direction.
///
/// # Panics
/// If a packet is longer than its datagram, or a flow counts more packets than there were.
pub fn target(data: &[u8]) {
    let (low, high) = ([0; 16], [1; 16]);
    let mut flows = Flows::new(0, 4);
    flows.explain();
    let (mut rest, mut count) = (data, 0u64);
    while let Some((head, after)) = rest.split_first_chunk::<2>() {
        let head = u16::from_be_bytes(*head);
        let length = usize::from(head & 0x0fff).min(after.len());
        let (octets, after) = after.split_at(length);
        rest = after;
        if let Some(Packet::Long(long)) = Packet::parse(octets) {
            assert!(long.length <= octets.len());
        }
        let frames: usize = CryptoFrames::new(octets)
            .map(|(_, octets)| octets.len())
            .sum();
        assert!(frames <= octets.len());
        let from_low = head & 0x8000 == 0;
        // Of DNS, ESP in UDP, and all else.
        let port = [53, 4500, 443, 443][usize::from(data[0] & 3)];
        let (key, from_low) = match from_low {
            true => FlowKey::new(&low, 1, &high, port, 0),
            false => FlowKey::new(&high, port, &low, 1, 0),
        };
        count += 1;
        let datagram = Datagram {
            number: count,
            time: count as i64 * 1_000_000,
            key,
            from_low,
            // As if the capture had cut it.
            length: 1208,
        };
        flows.packet_with(&datagram, octets, (head >> 12) as u8 & 3);
    }
    for flow in flows.flows() {
        let report = Report::new(flow).expect("each of few flows is explained");
        assert!(!report.sentence.is_empty());
        assert!(why::flow(&report).is_object());
        for sender in [&report.traffic.a, &report.traffic.b] {
            assert!(sender.streams.iter().count() <= STREAMS_MAX);
            let mut streams = sender.streams.iter();
            assert!(streams.all(|stream| stream.lost() <= stream.expected()));
        }
        let Some(quic) = &flow.quic else { continue };
        let short: u64 = quic.spin.iter().map(|spin| spin.packets).sum();
        assert!(short <= count && quic.spin.iter().all(|spin| spin.edges < count));
        assert!(quic.server_name.len() <= data.len());
        for numbers in &quic.initials {
            let packets = numbers.packets + numbers.duplicates;
            assert!(packets <= 128 && numbers.retransmitted <= numbers.packets);
        }
    }
}
