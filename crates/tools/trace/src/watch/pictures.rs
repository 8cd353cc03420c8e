//! `--svg` and `--html`: graphs as pictures, drawn when the connection finishes.

use trace::graph::{self, Collector, ConnectionGraph, Kind, Options};
use trace::xplot::Sink as _;
use trace::{Connection, Observer as _, Segment, Verdict};

use crate::files::Files;
use crate::hi::HiArgs;
use crate::low::Graphs;

/// Collects packets and draws them.
pub(super) struct Pictures {
    collector: Collector,
    files: Files,
    prefix: String,
    kinds: Graphs,
    svg: bool,
    html: bool,
    complete: bool,
}

impl Pictures {
    /// `None` if no picture is to be drawn.
    pub(super) fn new(args: &HiArgs, files: Files) -> Option<Pictures> {
        let low = &args.low;
        let options = Options {
            only: low.only.ranges().collect(),
            ignore: low.ignored.ranges().collect(),
            ..Options::default()
        };
        (low.svg || low.html).then(|| Pictures {
            collector: Collector::new(options),
            files,
            prefix: low.output_prefix.clone().unwrap_or_default(),
            kinds: low.graphs,
            svg: low.svg,
            html: low.html,
            complete: low.complete,
        })
    }

    pub(super) fn skip_letters(&mut self) {
        self.collector.skip_letters();
    }

    #[inline]
    pub(super) fn segment(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        self.collector.observe(connection, segment, verdict);
    }

    /// A connection has finished.
    pub(super) fn close(&mut self, first_packet: u64) {
        if let Some(graph) = self.collector.take(first_packet) {
            self.draw(&graph);
        }
    }

    fn draw(&mut self, graph: &ConnectionGraph) {
        if self.complete && !is_complete(graph) {
            return;
        }
        if self.svg {
            for (kind, way) in graph.kinds().filter(|&(kind, _)| self.kinds.has(kind)) {
                let name = graph::file_name(graph, kind, way, "svg");
                let text = graph::svg(graph, kind, way);
                write(&mut self.files, &self.prefix, &name, &text);
            }
        }
        if self.html {
            let (a, b) = &graph.letters;
            let text = graph::html(graph);
            write(
                &mut self.files,
                &self.prefix,
                &format!("{a}2{b}.html"),
                &text,
            );
        }
    }

    /// Draws the rest at the end of the input.
    pub(super) fn finish(mut self) -> Files {
        let left_out = self.collector.left_out();
        if left_out > 0 {
            eprintln!("headend: {left_out} connections were not drawn: too many at a time");
        }
        let collector = std::mem::replace(&mut self.collector, Collector::new(Options::default()));
        for graph in collector.finish() {
            self.draw(&graph);
        }
        self.files
    }
}

fn write(files: &mut Files, prefix: &str, name: &str, text: &str) {
    let id = files.open(&format!("{prefix}{name}"));
    files.write(id, text.as_bytes());
    files.close(id);
}

impl Graphs {
    /// Whether graphs of that kind are to be drawn.
    fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Sequence => self.time_sequence,
            Kind::Rtt => self.rtt,
            Kind::Throughput => self.throughput,
            Kind::Outstanding => self.in_flight,
            Kind::Sizes => self.segment_size,
            Kind::TimeLine => self.time_line,
        }
    }
}

/// Both SYNs and both FINs are among the packets.
fn is_complete(graph: &ConnectionGraph) -> bool {
    let sent = |from_a: bool, flag: u16| {
        let mut packets = graph.packets.iter();
        packets.any(|packet| packet.from_a() == from_a && packet.flags & flag != 0)
    };
    [true, false]
        .into_iter()
        .all(|from_a| sent(from_a, 0x02) && sent(from_a, 0x01))
}
