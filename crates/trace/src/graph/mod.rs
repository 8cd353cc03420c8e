//! Graphs as pictures: SVG to print, HTML to zoom.
//!
//! ```text
//! let mut collector = Collector::new(Options::default());
//! analyzer.packet(&segment, layers, &mut collector);          // for each packet
//! let graph = collector.take(first_packet);                   // of each connection that has finished, or
//! for graph in collector.finish() {                           // of all that are left
//!     for (kind, way) in graph.kinds() {
//!         let name = file_name(&graph, kind, way, "svg");     // a2b_tsg.svg, as tcptrace would call it
//!         let picture = svg(&graph, kind, way);
//!     }
//!     let page = html(&graph);                                // all kinds and both ways in one page
//! }
//! ```
//!
//! A [`Way`] selects the direction: the graph of `a2b` has the segments of `a`, and the ACKs and windows of `b` for
//! them. [`Kind::TimeLine`] shows both directions.
//!
//! [`Options`] limits memory: packets beyond the limits are counted, and the graph states how many it lacks. The SVG of
//! a large connection omits invisible points, but keeps the extremes of each column of pixels and every mark. A page
//! has at most [`PAGE_PACKETS`] packets, reduced in the same way, and states that.

mod axis;
mod bands;
mod chart;
mod collect;
mod html;
mod ladder;
mod series;
mod svg;
mod thin;

pub use bands::Band;
pub use collect::{Collector, ConnectionGraph, Marks, Options, Packet, Sack};
pub use html::html;
pub use thin::PAGE_PACKETS;

/// The kind of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sequence numbers of segments, ACKs and windows over time.
    Sequence,
    /// Round trips over time.
    Rtt,
    /// Throughput over time.
    Throughput,
    /// Bytes in flight over time.
    Outstanding,
    /// Sizes of segments over time.
    Sizes,
    /// Packets as arrows between both ends.
    TimeLine,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Sequence,
        Kind::Rtt,
        Kind::Throughput,
        Kind::Outstanding,
        Kind::Sizes,
        Kind::TimeLine,
    ];

    /// The suffix of its file's name in tcptrace.
    const fn suffix(self) -> &'static str {
        match self {
            Kind::Sequence => "tsg",
            Kind::Rtt => "rtt",
            Kind::Throughput => "tput",
            Kind::Outstanding => "owin",
            Kind::Sizes => "ssize",
            Kind::TimeLine => "tline",
        }
    }
}

/// The direction that a graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The data sent by end `a`.
    AToB,
    /// The data sent by end `b`.
    BToA,
}

/// The name of a graph's file: `a2b_tsg.svg`, `a_b_tline.svg`.
#[must_use]
pub fn file_name(graph: &ConnectionGraph, kind: Kind, way: Way, extension: &str) -> String {
    let (a, b) = (&graph.letters.0, &graph.letters.1);
    let (from, between, to) = match (kind, way) {
        (Kind::TimeLine, _) => (a, '_', b),
        (_, Way::AToB) => (a, '2', b),
        (_, Way::BToA) => (b, '2', a),
    };
    format!("{from}{between}{to}_{}.{extension}", kind.suffix())
}

impl ConnectionGraph {
    /// The graphs that are not empty.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, Way)> {
        let data = |from_a: bool| {
            self.packets
                .iter()
                .any(|packet| packet.from_a() == from_a && packet.space() > 0)
        };
        let (a, b) = (data(true), data(false));
        Kind::ALL.into_iter().flat_map(move |kind| {
            let time_line = kind == Kind::TimeLine;
            let ways = [
                (a || time_line).then_some((kind, Way::AToB)),
                (b && !time_line).then_some((kind, Way::BToA)),
            ];
            ways.into_iter().flatten()
        })
    }
}

/// Draws a graph as a picture of about 1200 by 700 pixels. A time line is as long as its packets need.
#[must_use]
pub fn svg(graph: &ConnectionGraph, kind: Kind, way: Way) -> String {
    match kind {
        Kind::TimeLine => ladder::draw(graph),
        _ => svg::draw(&series::chart(graph, kind, way)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
