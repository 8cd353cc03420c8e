//! The cases of the harness: the segments, their order and the lists, with the published results.

use sim::Rng;

use super::list::{Array, End, Linked, Ours, SegmentList};

/// How many segments the published harness had.
pub const SEGMENTS_PUBLISHED: usize = 30_000;

/// Bytes of a segment.
const LENGTH: u32 = 1_460;

/// Nanoseconds between two packets.
const GAP_NS: i64 = 100_000;

/// The packet that starts the recovery: the first retransmission.
const RECOVERY_AT: usize = 99;

/// In recovery, one packet in this many is a retransmission.
const RECOVERY_EVERY: usize = 500;

/// A retransmission repeats the segment this many packets before.
const RECOVERY_BACK: usize = 24;

/// A packet with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Offset of its first byte.
    pub first: u64,
    /// Bytes, at least one.
    pub length: u32,
    /// When it was sent, in nanoseconds.
    pub time_ns: i64,
}

/// The packets for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Packets inserted before the clock starts.
    pub before: Vec<Packet>,
    /// Packets whose insertion is timed.
    pub timed: Vec<Packet>,
    /// Index of the first timed packet that is also looked up, by the subjects that do look-ups.
    pub look_up_from: usize,
}

/// The cases of the harness, in our reading, and the walk that made the analysis of one capture
/// take 7 hours.
///
/// Costs are stated for a walk of one node at a time, and n segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// "No overlap": n segments in order, into an empty list. Neither list walks.
    NoOverlap,
    /// "All overlapping the last test's segments": the same n segments again in the same order. The
    /// k-th is k nodes from the head and n - k from the tail, so both lists walk n^2/2 nodes in
    /// total; the published times are about equal.
    AllOverlapping,
    /// "Last byte overlapping the next segment by one": n more segments in order after those of the
    /// case before; each starts with the last byte of its predecessor. From the tail that is one
    /// node; from the head it is the whole list: 3/2 n^2 in total, three times the previous case.
    /// The published factor is 3.8; on an empty list it would be 1.
    LastOctet,
    /// "Every 100th packet like a retransmission from two before": n packets in order into an empty
    /// list, but every hundredth repeats the one two before it. From the tail that is two nodes;
    /// from the head n^2/200 in total.
    ///
    /// The published 5.3 ms from the head do not fit this: at the pace of the published second
    /// case, that many nodes take 48 ms. They would fit lists of about a hundred segments.
    EveryHundredth,
    /// Not from the harness: a connection in recovery from the 100th packet to its end. For each
    /// packet, tcptrace looks up the segment that ends where the packet starts. Every 500th packet
    /// is a retransmission from 24 before.
    Recovery,
}

/// A subject: a list, and whether each packet is also looked up.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name in tables.
    pub name: &'static str,
    /// Makes an empty list.
    pub make: fn() -> Box<dyn SegmentList>,
    /// Whether packets from [`Load::look_up_from`] on are looked up.
    pub looks_up: bool,
    /// The published figure as text, with its unit.
    pub published: Option<&'static str>,
    /// The published figure in seconds.
    pub published_s: Option<f64>,
}

impl Case {
    /// The four cases of the harness.
    pub const HARNESS: [Self; 4] = [
        Self::NoOverlap,
        Self::AllOverlapping,
        Self::LastOctet,
        Self::EveryHundredth,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoOverlap => "no overlap",
            Self::AllOverlapping => "all overlap",
            Self::LastOctet => "last octet overlaps",
            Self::EveryHundredth => "every 100th again",
            Self::Recovery => "in recovery",
        }
    }

    /// The packets of this case, for n segments.
    #[must_use]
    pub fn load(self, n: usize) -> Load {
        let in_order = || (0..n).map(in_order).collect::<Vec<Packet>>();
        let (before, timed) = match self {
            Self::NoOverlap => (Vec::new(), in_order()),
            Self::AllOverlapping => {
                let again = (0..n).map(|k| Packet {
                    time_ns: time_ns(n + k),
                    ..self::in_order(k)
                });
                (in_order(), again.collect())
            }
            Self::LastOctet => {
                let longer = (n..2 * n).map(|k| Packet {
                    length: LENGTH + 1,
                    ..self::in_order(k)
                });
                (in_order(), longer.collect())
            }
            Self::EveryHundredth => {
                let is_again = |k: usize| k % 100 == 99;
                (Vec::new(), with_retransmissions(n, is_again, 2))
            }
            Self::Recovery => {
                let is_again = |k: usize| k % RECOVERY_EVERY == RECOVERY_AT;
                (Vec::new(), with_retransmissions(n, is_again, RECOVERY_BACK))
            }
        };
        Load {
            before,
            timed,
            look_up_from: RECOVERY_AT,
        }
    }

    /// The subjects of this case: the floor, the old lists, ours.
    ///
    /// Published results of the harness are seconds at [`SEGMENTS_PUBLISHED`] segments; those of
    /// the recovery are for a whole capture of 2.87 million packets, of which this case is a part.
    #[must_use]
    pub fn subjects(self) -> Vec<Subject> {
        let list = |name, make, published_s, published| Subject {
            name,
            make,
            looks_up: false,
            published,
            published_s,
        };
        let harness = |head_s, head, tail_s, tail| {
            vec![
                list("floor", array, None, None),
                list("from the head", head_head, Some(head_s), Some(head)),
                list("from the tail", tail_tail, Some(tail_s), Some(tail)),
                list("ours", ours, None, None),
            ]
        };
        match self {
            Self::NoOverlap => harness(0.0051, "0.0051 s", 0.0051, "0.0051 s"),
            Self::AllOverlapping => harness(4.83, "4.83 s", 4.27, "4.27 s"),
            Self::LastOctet => harness(18.15, "18.15 s", 0.0057, "0.0057 s"),
            Self::EveryHundredth => harness(0.0053, "0.0053 s", 0.0052, "0.0052 s"),
            Self::Recovery => recovery(),
        }
    }
}

/// The published designs, and ours.
fn recovery() -> Vec<Subject> {
    let subject = |name, make, looks_up, published_s, published| Subject {
        name,
        make,
        looks_up,
        published,
        published_s,
    };
    vec![
        subject("floor", array, true, None, None),
        subject(
            "inserted and looked up from the head",
            head_head,
            true,
            Some(25_200.0),
            Some("7 h"),
        ),
        subject(
            "inserted from the head, not looked up",
            head_head,
            false,
            Some(54.0),
            Some("54 s"),
        ),
        subject(
            "inserted from the head, looked up from the tail",
            head_tail,
            true,
            Some(75.0),
            Some("75 s; later 40.15 s"),
        ),
        subject(
            "inserted and looked up from the tail",
            tail_tail,
            true,
            Some(20.34),
            Some("later 20.34 s"),
        ),
        subject("ours, looked up", ours, true, None, None),
        // As in `headend trace`, whose results do not need the look-up.
        subject("ours", ours, false, None, None),
    ]
}

fn array() -> Box<dyn SegmentList> {
    Box::new(Array::default())
}

fn head_head() -> Box<dyn SegmentList> {
    Box::new(Linked::new(End::Head, End::Head))
}

fn head_tail() -> Box<dyn SegmentList> {
    Box::new(Linked::new(End::Head, End::Tail))
}

fn tail_tail() -> Box<dyn SegmentList> {
    Box::new(Linked::new(End::Tail, End::Tail))
}

fn ours() -> Box<dyn SegmentList> {
    Box::new(Ours::default())
}

fn time_ns(k: usize) -> i64 {
    k as i64 * GAP_NS
}

/// The k-th segment of a connection, after the SYN.
fn in_order(k: usize) -> Packet {
    Packet {
        first: 1 + k as u64 * u64::from(LENGTH),
        length: LENGTH,
        time_ns: time_ns(k),
    }
}

/// n packets in order, some of which repeat the segment sent `back` packets before.
fn with_retransmissions(n: usize, is_again: impl Fn(usize) -> bool, back: usize) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::with_capacity(n);
    let mut segments = 0;
    for k in 0..n {
        let packet = if is_again(k) && k >= back {
            packets[k - back]
        } else {
            segments += 1;
            in_order(segments - 1)
        };
        packets.push(Packet {
            time_ns: time_ns(k),
            ..packet
        });
    }
    packets
}

/// n segments of random sizes and offsets from a seed, in so few bytes that most of them overlap.
pub(super) fn at_random(seed: u64, n: usize) -> Vec<Packet> {
    let mut rng = Rng::stream(seed, &["segments"]);
    let octets = n as u64 * 20;
    let packet = |k| Packet {
        first: 1 + rng.below(octets),
        length: 1 + rng.below(100) as u32,
        time_ns: time_ns(k),
    };
    (0..n).map(packet).collect()
}
