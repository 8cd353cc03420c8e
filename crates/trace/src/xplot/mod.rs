//! Graphs as files for xplot, drawn as tcptrace does: flags `-S -R -T -N -F -L -G` and their
//! options.
//!
//! [`Plots`] observes the analyser and turns packets into [`Stroke`]s, which are a few numbers. A
//! [`Studio`] formats strokes with the [`Page`] of their file. [`Direct`] formats at once and
//! writes to a [`Sink`], which owns the files; other studios can use other threads. There is no I/O
//! here.
//!
//! ```text
//! let mut plots = Plots::new(Options { graphs: Graphs::ALL, ..Options::default() }, Direct::new(sink));
//! analyzer.packet(&segment, layers, &mut plots);     // for each packet
//! plots.close(first_packet);                         // for each connection of `Analyzer::take_finished`
//! let (direct, summary) = plots.finish();
//! ```
//!
//! | flag | file | graph |
//! |---|---|---|
//! | `-S` | `a2b_tsg.xpl` | time and sequence number of segments, ACKs and windows |
//! | `-R` | `a2b_rtt.xpl` | round trips, in milliseconds |
//! | `-T` | `a2b_tput.xpl` | throughput, bytes per second |
//! | `-N` | `a2b_owin.xpl` | bytes in flight, their averages, and the window |
//! | `-F` | `a2b_ssize.xpl` | sizes of segments |
//! | `-L` | `a_b_tline.xpl` | segments as arrows between both ends |
//!
//! Strokes of a file are formatted in batches, so there may be far more files than descriptors. Two
//! limits bound memory, [`Options::buffers_max`] and [`Options::connections_max`]; [`Summary`]
//! counts how often they took effect.
//!
//! Left out: `-Z` (`_rttraw.dat`), and `_rwin.xpl`, for which tcptrace 6.6.7 has no flag.

mod ends;
mod line;
mod page;
mod pair;
mod pen;
pub(crate) mod places;
mod plot;
mod plots;
mod sequence;
mod stroke;
mod timeline;

pub use page::Page;
pub use pen::Pen;
pub use plot::{Direct, FileId, Sink, Studio};
pub use plots::{Plots, Summary};
pub use stroke::Stroke;

use core::ops::RangeInclusive;

/// Which graphs to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Graphs {
    /// `-S`, time sequence.
    pub sequence: bool,
    /// `-R`, round trips.
    pub rtt: bool,
    /// `-T`, throughput.
    pub throughput: bool,
    /// `-N`, bytes in flight.
    pub outstanding: bool,
    /// `-F`, sizes of segments.
    pub sizes: bool,
    /// `-L`, time line.
    pub time_line: bool,
}

impl Graphs {
    /// `-G`.
    pub const ALL: Graphs = Graphs {
        sequence: true,
        rtt: true,
        throughput: true,
        outstanding: true,
        sizes: true,
        time_line: true,
    };

    /// Whether at least one is drawn.
    #[must_use]
    pub fn any(self) -> bool {
        self != Graphs::default()
    }
}

/// Style of the graphs, and limits of memory. The defaults are tcptrace's.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which graphs.
    pub graphs: Graphs,
    /// `-A`: number of packets of an average of the throughput.
    pub interval: u32,
    /// Throughput at each packet; `-y` leaves it out.
    pub instant: bool,
    /// `-z`, `-zx`: times are relative to the graph's first.
    pub zero_time: bool,
    /// `-zy`: sequence numbers are relative to the direction's first.
    pub zero_sequence: bool,
    /// `-C`; `-M` is false.
    pub colour: bool,
    /// `--showtitle`.
    pub title: bool,
    /// `--xplot_title_prefix`, expanded; empty for none.
    pub title_prefix: String,
    /// `--output_prefix`, expanded.
    pub prefix: String,
    /// `--showsacks`.
    pub sacks: bool,
    /// `--showrexmit`.
    pub retransmissions: bool,
    /// `--showoutorder`.
    pub out_of_order: bool,
    /// `--showzerowindow`.
    pub zero_windows: bool,
    /// `--showurg`.
    pub urgent: bool,
    /// `--showrttdongles`.
    pub rtt_marks: bool,
    /// `--showdupack3`.
    pub triple_duplicates: bool,
    /// `--showzerolensegs`.
    pub empty_segments: bool,
    /// `--showzwndprobes`.
    pub probes: bool,
    /// `--showrwinline`.
    pub window_line: bool,
    /// In a time line graph, sequence numbers are relative to its own connection's first. In tcptrace they are relative
    /// to those of the capture's first connection.
    pub own_time_line: bool,
    /// `-c`: only connections with both SYNs and both FINs.
    pub complete_only: bool,
    /// `-o`: only these connections; empty for all.
    pub only: Vec<RangeInclusive<u64>>,
    /// `-i`: not these connections.
    pub ignore: Vec<RangeInclusive<u64>>,
    /// Limit of bytes of queued strokes.
    pub buffers_max: usize,
    /// Limit of connections drawn at a time. In addition to buffers, each takes about 1 kB for one graph and 2 kB for
    /// all.
    pub connections_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            graphs: Graphs::default(),
            interval: 10,
            instant: true,
            zero_time: false,
            zero_sequence: false,
            colour: true,
            title: true,
            title_prefix: String::new(),
            prefix: String::new(),
            sacks: true,
            retransmissions: true,
            out_of_order: true,
            zero_windows: true,
            urgent: true,
            rtt_marks: false,
            triple_duplicates: true,
            empty_segments: true,
            probes: true,
            window_line: true,
            own_time_line: false,
            complete_only: false,
            only: Vec::new(),
            ignore: Vec::new(),
            buffers_max: 64 << 20,
            connections_max: 1 << 20,
        }
    }
}

impl Options {
    fn wants(&self, number: u64) -> bool {
        wants(&self.only, &self.ignore, number)
    }
}

/// Whether the connection with this number is drawn.
pub(crate) fn wants(
    only: &[RangeInclusive<u64>],
    ignore: &[RangeInclusive<u64>],
    number: u64,
) -> bool {
    let within = |ranges: &[RangeInclusive<u64>]| ranges.iter().any(|r| r.contains(&number));
    (only.is_empty() || within(only)) && !within(ignore)
}

#[cfg(test)]
mod tests;
