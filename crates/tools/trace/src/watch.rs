//! Observers of packets: UDP flows, warnings, printed and saved packets, contents, round-trip times, graphs, and the
//! report of closing connections.

mod contents;
mod live;
mod pictures;
mod print;
mod save;
mod warn;

use std::io::Write as _;

use anyhow::Context as _;
use trace::text::letters;
use trace::udp::{Datagram, FLOWS_MAX, Flows};
use trace::xplot::{FileId, Plots, Sink as _};
use trace::{Checksum, Connection, Observer as _, Plan, Seen, Segment, Verdict, Watch};
use wire::tcp::Tcp;
use wire::udp::Udp;

use self::contents::Contents;
use self::live::Live;
use self::pictures::Pictures;
use self::print::Printer;
use self::save::Save;
use self::warn::Warn;
use super::files::Files;
use super::hi::HiArgs;
use super::low::{Graphs, LowArgs};
use super::names::Lookup;
use super::painters::Painters;
use super::report::Style;
use super::written::Written;

/// All observers that the command line asks for.
pub(super) struct Watchers<'a> {
    args: &'a HiArgs,
    plan: Plan,
    numbers: Numbers,
    pub(super) flows: Option<Flows>,
    /// `-w` and its parts.
    warn: Option<Warn>,
    print: Option<Printer<'a>>,
    save: Option<Save>,
    contents: Option<Contents>,
    rtt: Option<RttDump>,
    plots: Option<Plots<Painters>>,
    pictures: Option<Pictures>,
    live: Option<Live>,
}

/// The number and letters of each connection, by its first packet.
#[derive(Default)]
struct Numbers {
    /// First packet and pair of letters of each connection.
    connections: Vec<(u64, u64)>,
    pairs: u64,
}

/// The number and letters of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its pair of letters.
    pub(super) pair: u64,
}

impl Numbers {
    fn of(&mut self, connection: &Connection, first: bool) -> Called {
        if first {
            self.pairs += 1;
            self.connections.push((connection.first_packet, self.pairs));
        }
        let found = self
            .connections
            .binary_search_by_key(&connection.first_packet, |known| known.0);
        let at = found.unwrap_or(0);
        Called {
            number: at as u64 + 1,
            pair: self.connections.get(at).map_or(1, |known| known.1),
        }
    }
}

impl Numbers {
    /// The pair of letters of the connection with that first packet, if it has a number.
    fn pair_of(&self, first_packet: u64) -> Option<u64> {
        let known = self
            .connections
            .binary_search_by_key(&first_packet, |known| known.0);
        Some(self.connections[known.ok()?].1)
    }
}

impl<'a> Watchers<'a> {
    /// The observers that the command line asks for; `None` if there are none.
    ///
    /// # Errors
    /// A file cannot be created.
    pub(super) fn new(
        style: &'a Style<'a>,
        live: bool,
        plan: Plan,
    ) -> anyhow::Result<Option<Watchers<'a>>> {
        let args = style.args;
        let low = &args.low;
        let files = || Files::new(low.output_dir.clone());
        let prefix = low.output_prefix.clone().unwrap_or_default();
        let watchers = Watchers {
            plan,
            numbers: Numbers::default(),
            flows: low.udp.then(|| flows(low, plan)),
            warn: Warn::new(low.warn),
            print: Printer::new(style),
            save: match &low.save {
                Some(path) => Some(Save::new(path)?),
                None => None,
            },
            contents: low.contents.then(|| Contents::new(files(), prefix.clone())),
            rtt: low.rtt_dump.then(|| RttDump::new(files(), prefix.clone())),
            plots: plots(args),
            pictures: Pictures::new(args, files()),
            live: live.then(Live::default),
            args,
        };
        let names_files = watchers.names_files();
        if let Some(directory) = &low.output_dir
            && names_files
        {
            std::fs::create_dir_all(directory).with_context(|| {
                format!(
                    "--output_dir: cannot create the directory {}",
                    directory.display()
                )
            })?;
        }
        let wanted = watchers.flows.is_some()
            || watchers.warn.is_some()
            || watchers.print.is_some()
            || watchers.save.is_some()
            || names_files
            || watchers.live.is_some()
            || low.checksum;
        Ok(wanted.then_some(watchers))
    }

    /// Whether any of them writes files whose names headend chooses.
    fn names_files(&self) -> bool {
        self.contents.is_some()
            || self.rtt.is_some()
            || self.plots.is_some()
            || self.pictures.is_some()
    }

    /// The text printed since the last call.
    pub(super) fn printed(&mut self) -> Option<&mut String> {
        self.print.as_mut().map(Printer::text)
    }

    /// A connection has finished: writes its data and frees its memory.
    pub(super) fn close(&mut self, first_packet: u64) {
        if let Some(plots) = &mut self.plots {
            plots.close(first_packet);
        }
        if let Some(pictures) = &mut self.pictures {
            pictures.close(first_packet);
        }
        if let Some(pair) = self.numbers.pair_of(first_packet) {
            if let Some(contents) = &mut self.contents {
                contents.close(pair);
            }
            if let Some(rtt) = &mut self.rtt {
                rtt.close(pair);
            }
        }
    }

    /// Writes the rest at the end of the input.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let mut all = Vec::new();
        let mut wrong = None;
        let mut written = Written::default();
        if let Some(plots) = self.plots {
            let (painters, summary) = plots.finish();
            if summary.left_out > 0 {
                eprintln!(
                    "headend: {} connections were not drawn: too many at a time",
                    summary.left_out
                );
            }
            match painters.finish() {
                Ok(files) => written.join(files),
                Err(error) => wrong = Some(error),
            }
        }
        if let Some(pictures) = self.pictures {
            all.push(pictures.finish());
        }
        if let Some(contents) = self.contents {
            all.push(contents.finish());
        }
        if let Some(rtt) = self.rtt {
            all.push(rtt.finish());
        }
        if let Some(save) = self.save {
            save.finish()?;
        }
        let others = all.iter_mut().filter_map(Files::wrong);
        if let Some((path, error)) = wrong.into_iter().chain(others).next() {
            anyhow::bail!("cannot write {}: {error}", path.display());
        }
        all.iter_mut()
            .for_each(|files| written.join(files.written()));
        if let Some(message) = written.message(self.args.low.output_dir.as_ref()) {
            eprintln!("headend: {message}");
        }
        Ok(())
    }
}

impl Watch for Watchers<'_> {
    type Error = trace::Error;

    fn set_file(&mut self, file: u32) {
        if let Some(flows) = &mut self.flows {
            flows.set_file(file);
        }
    }

    fn packet(&mut self, seen: &Seen<'_, '_>) {
        if let Some(warn) = &mut self.warn {
            warn.packet(seen);
        }
        if let Some(print) = &mut self.print
            && print.all
        {
            print.frame(seen);
        }
    }

    fn bad_checksum(&mut self, seen: &Seen<'_, '_>, which: Checksum) {
        if self.args.low.warn.checksums {
            let name = match which {
                Checksum::Ip => "IP",
                Checksum::Tcp => "TCP",
                Checksum::Udp => "UDP",
            };
            eprintln!("packet {}: bad {name} checksum", seen.number);
        }
    }

    fn other(&mut self, seen: &Seen<'_, '_>) {
        let Some(flows) = &mut self.flows else {
            return;
        };
        let Ok(udp) = Udp::parse(seen.packet) else {
            return;
        };
        let realm = seen.realm;
        let time = seen.record.time_ns;
        let datagram = Datagram::new(seen.number, time, seen.packet, &udp, realm);
        if !self.plan.has(&datagram.key) {
            return;
        }
        let before = flows.flows().len();
        let codepoint = seen.packet.traffic_class & 3;
        let number = flows.packet_with(&datagram, udp.payload, codepoint);
        if flows.flows().len() > before {
            self.numbers.pairs += 1;
            if let Some(plots) = &mut self.plots {
                plots.skip_letters();
            }
            if let Some(pictures) = &mut self.pictures {
                pictures.skip_letters();
            }
        }
        if !number.is_some_and(|number| self.args.chosen_flow(number)) {
            return;
        }
        if let Some(save) = &mut self.save {
            save.packet(seen);
        }
        if let Some(print) = &mut self.print
            && !print.all
        {
            print.chosen(seen, None);
        }
    }

    fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        if let Some(plots) = &mut self.plots {
            plots.observe(connection, segment, verdict);
        }
        if let Some(pictures) = &mut self.pictures {
            pictures.segment(connection, segment, verdict);
        }
        if let Some(live) = &mut self.live {
            live.segment(connection, segment);
        }
        if let Some(warn) = &mut self.warn {
            warn.segment(seen, tcp, connection, segment, verdict);
        }
        let print = self.print.as_ref().is_some_and(|print| !print.all);
        if !print && self.save.is_none() && self.contents.is_none() && self.rtt.is_none() {
            return;
        }
        let called = self.numbers.of(connection, verdict.first);
        if !self.args.chosen(called.number) {
            return;
        }
        if let Some(save) = &mut self.save {
            save.packet(seen);
        }
        if let Some(print) = self.print.as_mut().filter(|print| !print.all) {
            print.chosen(seen, Some((connection, verdict.from_a)));
        }
        if let Some(contents) = &mut self.contents {
            contents.segment(called, tcp, connection, verdict.from_a);
        }
        if let Some(rtt) = &mut self.rtt {
            rtt.segment(called, verdict);
        }
    }
}

/// The UDP flows; with `--details`, QUIC is looked for, and `why` explains them.
fn flows(low: &LowArgs, plan: Plan) -> Flows {
    let mut flows = Flows::new(plan.seed(), FLOWS_MAX);
    if low.details {
        flows.look_into();
    }
    if low.why {
        flows.explain();
    }
    flows
}

/// The graphs for xplot, if the command line asks for them.
fn plots(args: &HiArgs) -> Option<Plots<Painters>> {
    use trace::xplot;
    let low = &args.low;
    let Graphs {
        throughput,
        rtt,
        time_sequence,
        in_flight,
        segment_size,
        time_line,
    } = low.graphs;
    let graphs = xplot::Graphs {
        sequence: time_sequence,
        rtt,
        throughput,
        outstanding: in_flight,
        sizes: segment_size,
        time_line,
    };
    if !graphs.any() || low.svg || low.html {
        return None;
    }
    let show = &low.show;
    let options = xplot::Options {
        graphs,
        interval: low.average,
        instant: low.instantaneous,
        zero_time: low.time_from_zero,
        zero_sequence: low.sequence_from_zero,
        colour: low.colour,
        title: show.title,
        title_prefix: low.title_prefix.clone().unwrap_or_default(),
        prefix: low.output_prefix.clone().unwrap_or_default(),
        sacks: show.sacks,
        retransmissions: show.retransmissions,
        out_of_order: show.out_of_order,
        zero_windows: show.zero_window,
        urgent: show.urgent,
        rtt_marks: show.rtt_dongles,
        triple_duplicates: show.triple_duplicates,
        empty_segments: show.empty_segments,
        probes: show.probes,
        window_line: show.window_line,
        complete_only: low.complete,
        only: low.only.ranges().collect(),
        ignore: low.ignored.ranges().collect(),
        ..xplot::Options::default()
    };
    let painters = Painters::new(args.painters(), low.output_dir.clone());
    let mut plots = Plots::new(options, painters);
    if low.host_names || low.port_names {
        let names = Lookup::new(low.host_names, low.port_names, low.short_names);
        plots.set_names(Box::new(names));
    }
    Some(plots)
}

/// `-Z`: a file for each direction, with a line for each sample: sequence number and round-trip time in ms.
struct RttDump {
    files: Files,
    prefix: String,
    ids: std::collections::HashMap<(u64, bool), FileId>,
}

impl RttDump {
    fn new(files: Files, prefix: String) -> RttDump {
        RttDump {
            files,
            prefix,
            ids: std::collections::HashMap::new(),
        }
    }

    fn segment(&mut self, called: Called, verdict: &Verdict) {
        let Some(sample) = verdict.sample.filter(|sample| sample.time > 0) else {
            return;
        };
        // An ACK measures the other end's data.
        let of_a = !verdict.from_a;
        let RttDump { files, prefix, ids } = self;
        let id = *ids.entry((called.pair, of_a)).or_insert_with(|| {
            files.open(&format!(
                "{prefix}{}_rttraw.dat",
                direction(called.pair, of_a)
            ))
        });
        let mut line = Vec::with_capacity(24);
        let _ = writeln!(line, "{} {}", sample.sequence, sample.time / 1_000_000);
        files.write(id, &line);
    }

    /// A connection has finished.
    fn close(&mut self, pair: u64) {
        for of_a in [true, false] {
            if let Some(id) = self.ids.remove(&(pair, of_a)) {
                self.files.close(id);
            }
        }
    }

    fn finish(self) -> Files {
        self.files
    }
}

/// `a2b` or `b2a`, in the letters of a pair.
fn direction(pair: u64, of_a: bool) -> String {
    let (a, b) = letters(pair);
    if of_a {
        format!("{a}2{b}")
    } else {
        format!("{b}2{a}")
    }
}
