//! The series of each kind of graph.

use super::axis::Unit;
use super::chart::{BLACK, BLUE, Chart, Data, GREEN, Look, ORANGE, PURPLE, SKY, Series, VERMILION};
use super::{ConnectionGraph, Kind, Marks, Packet, Way};
use core::fmt::Write;
use std::borrow::Cow;

/// Approximate number of intervals of throughput in a graph.
const STRETCHES: f64 = 150.0;

/// The chart of any kind but the time line.
pub(super) fn chart(graph: &ConnectionGraph, kind: Kind, way: Way) -> Chart {
    let view = View { graph, way };
    let (title, y_name, y_unit, mut series) = match kind {
        Kind::Rtt => (
            "Round-trip times of data",
            "round-trip time",
            Unit::Seconds,
            view.round_trips(),
        ),
        Kind::Throughput => (
            "Throughput",
            "payload sent, retransmissions included",
            Unit::BitsPerSecond,
            view.throughput(),
        ),
        Kind::Outstanding => (
            "Bytes in flight",
            "sent but not acknowledged",
            Unit::Octets,
            view.outstanding(),
        ),
        Kind::Sizes => (
            "Segment sizes",
            "payload of a segment",
            Unit::Octets,
            view.sizes(),
        ),
        Kind::Sequence | Kind::TimeLine => (
            "Time sequence graph",
            "sequence number, from the first",
            Unit::Octets,
            view.sequence(),
        ),
    };
    series.retain(|series| !series.data.is_empty());
    for series in &mut series {
        series.data.put_in_order();
    }
    let (from, to) = match way {
        Way::AToB => (&graph.a, &graph.b),
        Way::BToA => (&graph.b, &graph.a),
    };
    Chart {
        title: format!("{title}: {from} → {to}"),
        subtitle: subtitle(graph),
        y_name,
        y_unit,
        series,
        bands: view.bands(),
    }
}

/// The connection, and how many packets are not shown.
pub(super) fn subtitle(graph: &ConnectionGraph) -> String {
    let mut text = format!("connection {}", graph.number);
    if let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(graph.first_time)) {
        // Writing to a string cannot fail.
        let _ = write!(text, ", first packet {} at {time}", graph.first_packet);
    }
    let _ = write!(text, ", {} packets", graph.packets.len());
    if graph.dropped > 0 {
        let _ = write!(
            text,
            " shown; {} later ones are not: the limit was reached",
            graph.dropped
        );
    }
    text
}

/// A direction of a connection.
struct View<'a> {
    graph: &'a ConnectionGraph,
    way: Way,
}

impl View<'_> {
    /// What the sender waited for.
    fn bands(&self) -> Vec<(f64, f64, crate::why::Cause)> {
        let own = self.graph.bands.iter();
        own.filter(|band| band.from_a == (self.way == Way::AToB))
            .map(|band| (band.from as f64 / 1e9, band.to as f64 / 1e9, band.cause))
            .collect()
    }
}

/// When a packet was captured, in seconds from the connection's first.
fn seconds(packet: &Packet) -> f64 {
    packet.time as f64 / 1e9
}

/// A series of points.
fn points(
    name: impl Into<Cow<'static, str>>,
    colour: &'static str,
    look: Look,
    points: impl Iterator<Item = (f64, f64)>,
) -> Series {
    Series {
        name: name.into(),
        colour,
        look,
        data: Data::Points(points.collect()),
    }
}

/// A series of bars: time, lower end, upper end.
fn bars(
    name: &'static str,
    colour: &'static str,
    bars: impl Iterator<Item = (f64, f64, f64)>,
) -> Series {
    Series {
        name: name.into(),
        colour,
        look: Look::Line,
        data: Data::Bars(bars.collect()),
    }
}

impl<'a> View<'a> {
    /// The packets of the end whose data is shown.
    fn sent(&self) -> impl Iterator<Item = &'a Packet> {
        let from_a = self.way == Way::AToB;
        self.graph
            .packets
            .iter()
            .filter(move |packet| packet.from_a() == from_a)
    }

    /// The packets of the other end.
    fn answered(&self) -> impl Iterator<Item = &'a Packet> {
        let from_a = self.way == Way::AToB;
        self.graph
            .packets
            .iter()
            .filter(move |packet| packet.from_a() != from_a)
    }

    /// Where the sent packets with a mark end.
    fn marked(&self, mark: Marks) -> impl Iterator<Item = (f64, f64)> {
        self.sent()
            .filter(move |packet| packet.marks.has(mark))
            .map(|packet| {
                let end = packet.sequence + packet.space();
                (seconds(packet), end as f64)
            })
    }

    /// The sequence numbers of each sent packet, as bars.
    fn segments(&self) -> Series {
        let segments = self
            .sent()
            .filter(|packet| packet.space() > 0)
            .map(|packet| {
                let end = packet.sequence + packet.space();
                (seconds(packet), packet.sequence as f64, end as f64)
            });
        bars("segments", BLUE, segments)
    }

    /// The blocks that the other end acknowledged selectively, as bars.
    fn sacks(&self) -> Series {
        let from_a = self.way == Way::AToB;
        let sacks = self.graph.sacks.iter().filter_map(|sack| {
            let packet = self.graph.packets.get(sack.packet as usize)?;
            (packet.from_a() != from_a)
                .then(|| (seconds(packet), sack.left as f64, sack.right as f64))
        });
        bars("SACK", SKY, sacks)
    }

    fn sequence(&self) -> Vec<Series> {
        let acks = || self.answered().filter(|packet| packet.ack());
        let acked = |packet: &Packet| (seconds(packet), packet.acknowledgment as f64);
        let window_end = |packet: &Packet| {
            let end = packet
                .acknowledgment
                .saturating_add(i64::from(packet.window));
            (seconds(packet), end as f64)
        };
        let flags = |flag: u16| {
            self.sent()
                .filter(move |packet| packet.flags & flag != 0)
                .map(|packet| (seconds(packet), (packet.sequence + packet.space()) as f64))
        };
        let with = |mark| {
            acks()
                .filter(move |packet| packet.marks.has(mark))
                .map(acked)
        };
        vec![
            points(
                "window end",
                ORANGE,
                Look::DashedSteps,
                acks().map(window_end),
            ),
            points("acknowledged", GREEN, Look::Steps, acks().map(acked)),
            self.segments(),
            self.sacks(),
            points("SYN, FIN", BLACK, Look::Square, flags(3)),
            points("RST", BLACK, Look::Cross, flags(4)),
            points(
                "retransmitted",
                VERMILION,
                Look::Cross,
                self.marked(Marks::RETRANSMITTED),
            ),
            points(
                "out of order",
                PURPLE,
                Look::Triangle,
                self.marked(Marks::OUT_OF_ORDER),
            ),
            points(
                "window probe",
                ORANGE,
                Look::Ring,
                self.marked(Marks::PROBE),
            ),
            points(
                "zero window",
                VERMILION,
                Look::Ring,
                with(Marks::ZERO_WINDOW),
            ),
            points(
                "third duplicate ACK",
                GREEN,
                Look::Triangle,
                with(Marks::TRIPLE),
            ),
        ]
    }

    fn round_trips(&self) -> Vec<Series> {
        let samples = self.answered().filter(|packet| packet.rtt.is_finite());
        let samples = samples.map(|packet| (seconds(packet), f64::from(packet.rtt) / 1e3));
        vec![points("measured by an ACK", BLUE, Look::Dots, samples)]
    }

    fn throughput(&self) -> Vec<Series> {
        let time = |packet: &Packet| seconds(packet).max(0.0);
        let whole = self.graph.packets.iter().map(time).fold(0.0, f64::max);
        let stretch = round_up(whole / STRETCHES).max(1e-6);
        let unit = Unit::Seconds.scaled(stretch * 2.0);
        // A remainder at the end belongs to the last stretch, unless it is longer than half of one.
        let mut sums = vec![0_u64; ((whole / stretch).round() as usize).max(1)];
        let mut total = 0_u64;
        let mut mean = Vec::new();
        for packet in self.sent().filter(|packet| packet.length > 0) {
            let time = time(packet);
            total += u64::from(packet.length);
            let at = ((time / stretch) as usize).min(sums.len() - 1);
            sums[at] += u64::from(packet.length);
            if time >= stretch {
                mean.push((time, total as f64 * 8.0 / time));
            }
        }
        let last = sums.len() - 1;
        let mut steps: Vec<_> = (sums.iter().enumerate())
            .map(|(index, sum)| {
                let start = index as f64 * stretch;
                let lasted = if index == last {
                    whole - start
                } else {
                    stretch
                };
                (start, *sum as f64 * 8.0 / lasted.max(1e-9))
            })
            .collect();
        if total == 0 {
            steps.clear();
        } else if let Some(&(_, last)) = steps.last() {
            steps.push((whole, last));
        }
        vec![
            points(
                format!("in each {} {}", stretch / unit.1, unit.0),
                BLUE,
                Look::Steps,
                steps.into_iter(),
            ),
            points(
                "mean since the beginning",
                VERMILION,
                Look::Line,
                mean.into_iter(),
            ),
        ]
    }

    fn outstanding(&self) -> Vec<Series> {
        let samples = self.sent().filter(|packet| packet.in_flight < u32::MAX);
        let samples = samples.map(|packet| (seconds(packet), f64::from(packet.in_flight)));
        let windows = self.answered().filter(|packet| packet.ack());
        let windows = windows.map(|packet| (seconds(packet), f64::from(packet.window)));
        vec![
            points("window of the receiver", ORANGE, Look::DashedSteps, windows),
            points("in flight", BLUE, Look::Steps, samples),
        ]
    }

    fn sizes(&self) -> Vec<Series> {
        let data = || self.sent().filter(|packet| packet.length > 0);
        let sizes = data().map(|packet| (seconds(packet), f64::from(packet.length)));
        let mean = data().scan((0.0, 0.0), |(total, count), packet| {
            *total += f64::from(packet.length);
            *count += 1.0;
            Some((seconds(packet), *total / *count))
        });
        vec![
            points("segment", BLUE, Look::Dots, sizes),
            points("mean so far", VERMILION, Look::Line, mean),
        ]
    }
}

/// The next 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powi(value.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= value);
    factor.unwrap_or(10.0) * power
}
