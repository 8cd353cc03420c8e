//! Graphs of small made-up connections, and of anything at all.

use super::*;
use crate::key::FlowKey;
use crate::segment::SegmentOptions;
use crate::{Analyzer, Config, Segment};
use proptest::prelude::*;
use wire::tcp::Options as TcpOptions;

const SYN: u16 = 2;
const ACK: u16 = 16;

/// A packet between the same two ends.
pub(crate) fn segment(
    number: u64,
    from_a: bool,
    time: i64,
    flags: u16,
    sequence: u32,
    length: u32,
) -> Segment {
    let mut a = [0; 16];
    a[10..].copy_from_slice(&[255, 255, 10, 0, 0, 1]);
    let mut b = a;
    b[15] = 2;
    let (from, to, ports) = if from_a {
        (a, b, (1000, 80))
    } else {
        (b, a, (80, 1000))
    };
    let (key, from_low) = FlowKey::new(&from, ports.0, &to, ports.1, 0);
    Segment {
        number,
        time,
        clock: time,
        key,
        from_low,
        version: 4,
        traffic_class: 0,
        hop_limit: 64,
        id: number as u16,
        flags,
        sequence,
        acknowledgment: 0,
        window: 1000,
        urgent: 0,
        checksum: 0,
        payload: length,
        captured: length,
        lead: 0,
        options: SegmentOptions::default(),
    }
}

/// A connection of `count` segments, each acknowledged, of which every `lost`-th is sent again.
pub(crate) fn transfer(count: u32, lost: u32) -> Vec<Segment> {
    let mut segments = vec![segment(1, true, 0, SYN, u32::MAX - 5000, 0)];
    let mut answer = segment(2, false, 10_000_000, SYN | ACK, 77, 0);
    answer.acknowledgment = u32::MAX - 4999;
    segments.push(answer);
    let mut next = u32::MAX - 4999;
    for index in 0..count {
        let time = 20_000_000 + i64::from(index) * 1_000_000;
        let number = segments.len() as u64 + 1;
        let mut data = segment(number, true, time, ACK, next, 1448);
        data.acknowledgment = 78;
        segments.push(data);
        if index % lost == lost - 1 {
            data.number += 1;
            data.id += 1;
            data.time += 300_000;
            data.clock = data.time;
            segments.push(data);
        }
        next = next.wrapping_add(1448);
        let number = segments.len() as u64 + 1;
        let time = time + 500_000 + i64::from(index % 7) * 10_000;
        let mut ack = segment(number, false, time, ACK, 78, 0);
        ack.acknowledgment = next;
        segments.push(ack);
    }
    segments
}

fn collect(segments: &[Segment], options: Options) -> Vec<ConnectionGraph> {
    let mut collector = Collector::new(options);
    let mut analyzer = Analyzer::new(Config::default());
    for segment in segments {
        analyzer.packet(segment, &[], &mut collector);
    }
    collector.finish()
}

#[test]
fn counts_sequence_numbers_from_the_first_across_the_wrap() {
    let graphs = collect(&transfer(10, 100), Options::default());
    let last = graphs[0].packets.iter().rfind(|packet| packet.from_a());
    assert_eq!(last.map(|packet| packet.sequence), Some(1 + 9 * 1448));
    let last = graphs[0].packets.last();
    assert_eq!(
        last.map(|packet| packet.acknowledgment),
        Some(1 + 10 * 1448)
    );
}

#[test]
fn draws_every_kind_with_axes_units_and_names() {
    let graph = &collect(&transfer(200, 20), Options::default())[0];
    for (kind, way, texts) in [
        (
            Kind::Sequence,
            Way::AToB,
            [
                "acknowledged",
                "retransmitted",
                "10.0.0.1:1000 → 10.0.0.2:80",
                "(kB)",
            ],
        ),
        (
            Kind::Rtt,
            Way::AToB,
            ["measured by an ACK", "Round-trip", "(ms)", "10.0.0.2"],
        ),
        (
            Kind::Throughput,
            Way::AToB,
            ["in each 2 ms", "mean since", "Mbit/s", "(ms)"],
        ),
        (
            Kind::Outstanding,
            Way::AToB,
            ["in flight", "window", "(bytes)", "time since"],
        ),
        (
            Kind::Sizes,
            Way::AToB,
            ["segment", "mean so far", "(bytes)", "time since"],
        ),
        (
            Kind::TimeLine,
            Way::AToB,
            ["SYN", "retransmitted", "ack 1449", "10.0.0.2:80"],
        ),
    ] {
        let picture = svg(graph, kind, way);
        for text in texts {
            assert!(
                picture.contains(text),
                "{kind:?} lacks {text}: {picture:.900}"
            );
        }
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        assert_eq!(
            picture.matches("<text").count(),
            picture.matches("</text>").count()
        );
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
    let kinds: Vec<_> = graph.kinds().collect();
    assert!(kinds.contains(&(Kind::TimeLine, Way::AToB)));
    assert_eq!(file_name(graph, Kind::Rtt, Way::BToA, "svg"), "b2a_rtt.svg");
    assert_eq!(
        file_name(graph, Kind::TimeLine, Way::BToA, "svg"),
        "a_b_tline.svg"
    );
}

#[test]
fn keeps_every_mark_of_a_large_connection_in_a_small_picture() {
    let graph = &collect(&transfer(300_000, 1000), Options::default())[0];
    assert!(graph.packets.len() > 600_000);
    for (kind, way) in graph.kinds() {
        let picture = svg(graph, kind, way);
        assert!(
            picture.len() < 2_000_000,
            "{kind:?} takes {}",
            picture.len()
        );
    }
    let picture = svg(graph, Kind::Sequence, Way::AToB);
    // 300 of them, and the one in the legend.
    assert_eq!(picture.matches("l7 7m0-7l-7 7").count(), 301);
    let page = html(graph);
    assert!(page.len() < 20_000_000);
    assert!(page.contains("extremes, and what is marked"));
}

#[test]
fn says_what_its_limits_left_out() {
    let segments = transfer(100, 10);
    let options = Options {
        packets_max: 50,
        ..Options::default()
    };
    let graph = &collect(&segments, options)[0];
    assert_eq!(graph.packets.len(), 50);
    assert_eq!(graph.dropped, segments.len() as u64 - 50);
    assert!(svg(graph, Kind::Sequence, Way::AToB).contains("later ones are not"));
    assert!(html(graph).contains("later ones are not"));

    let options = Options {
        connections_max: 0,
        ..Options::default()
    };
    let mut collector = Collector::new(options);
    Analyzer::new(Config::default()).packet(&segments[0], &[], &mut collector);
    assert_eq!(collector.left_out(), 1);
    assert!(collector.finish().is_empty());

    let options = Options {
        ignore: vec![1..=3],
        ..Options::default()
    };
    assert!(collect(&segments, options).is_empty());
}

#[test]
fn makes_a_page_that_needs_nothing_from_elsewhere() {
    let mut graph = collect(&transfer(30, 7), Options::default()).remove(0);
    graph.a = "<script>alert(1)</script>@DATA@".into();
    let page = html(&graph);
    // The library names its home in a comment.
    let page = page.replace("/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "");
    assert!(!page.contains("http://") && !page.contains("https://"));
    assert!(!page.contains("<script>alert"));
    for word in ["<link", "src=", "import ", "url(", "fetch("] {
        assert!(!page.contains(word), "{word}");
    }
    for name in ["time", "sequence", "inFlight", "sackLeft"] {
        assert!(page.contains(&format!("[\"{name}\",")), "{name}");
    }
}

#[test]
fn gives_out_what_has_finished() {
    let segments = transfer(5, 7);
    let mut collector = Collector::new(Options::default());
    let mut analyzer = Analyzer::new(Config::default());
    for segment in &segments {
        analyzer.packet(segment, &[], &mut collector);
    }
    assert!(collector.take(99).is_none());
    let graph = collector.take(1).expect("it was collected");
    assert_eq!(graph.packets.len(), segments.len());
    assert!(collector.take(1).is_none());
    assert!(collector.finish().is_empty());
}

#[test]
fn draws_a_connection_of_nothing() {
    let graph = ConnectionGraph::default();
    for kind in Kind::ALL {
        for way in [Way::AToB, Way::BToA] {
            assert!(!svg(&graph, kind, way).contains("NaN"));
        }
    }
    assert!(html(&graph).ends_with("</html>\n"));
}

pub(crate) fn any_segment() -> impl Strategy<Value = Segment> {
    let numbers = (
        any::<bool>(),
        any::<i64>(),
        any::<u16>(),
        any::<u32>(),
        any::<u32>(),
    );
    let near = (any::<u32>(), any::<u16>(), any::<u16>(), 0_u32..5);
    let octets = proptest::collection::vec(any::<u8>(), 0..40);
    (numbers, near, octets).prop_map(|(numbers, near, octets)| {
        let (from_a, time, flags, sequence, length) = numbers;
        let (acknowledgment, window, id, small) = near;
        // Half of them are close together, in time and sequence, and short.
        let close = flags & 0x100 != 0;
        let (time, sequence, length) = if close {
            (time % 1_000_000_000, sequence % 10_000, length % 3000)
        } else {
            (time / 4, sequence, length)
        };
        let mut segment = segment(1 + u64::from(small), from_a, time, flags, sequence, length);
        segment.acknowledgment = if close {
            acknowledgment % 10_000
        } else {
            acknowledgment
        };
        segment.window = window;
        segment.id = id;
        segment.options.set(&TcpOptions::parse(&octets));
        segment
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn draws_anything(mut segments in proptest::collection::vec(any_segment(), 0..60)) {
        let mut clock = i64::MIN / 4;
        for (segment, number) in segments.iter_mut().zip(1..) {
            clock = clock.max(segment.time);
            (segment.number, segment.clock) = (number, clock);
        }
        for graph in collect(&segments, Options::default()) {
            for kind in Kind::ALL {
                for way in [Way::AToB, Way::BToA] {
                    let picture = svg(&graph, kind, way);
                    prop_assert!(!picture.contains("NaN"));
                    prop_assert!(picture.len() < 2_000_000);
                }
            }
            prop_assert!(html(&graph).ends_with("</html>\n"));
        }
    }
}
