//! The command line as typed: its switches and values, before they are interpreted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::flags::{self, Act, Flag};
use super::values::{self, Numbers};

/// Why a command line is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Usage(pub(super) String);

/// Texts that are printed instead of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Help {
    Arguments,
    Filter,
    Output,
    Hints,
    Formats,
    Version,
}

/// The details drawn in graphs.
#[derive(Debug, Clone)]
pub(super) struct Shows {
    pub(super) sacks: bool,
    pub(super) retransmissions: bool,
    pub(super) out_of_order: bool,
    pub(super) zero_window: bool,
    pub(super) urgent: bool,
    pub(super) rtt_dongles: bool,
    pub(super) triple_duplicates: bool,
    pub(super) empty_segments: bool,
    pub(super) probes: bool,
    pub(super) title: bool,
    pub(super) window_line: bool,
}

/// The graphs to draw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Graphs {
    pub(super) throughput: bool,
    pub(super) rtt: bool,
    pub(super) time_sequence: bool,
    pub(super) in_flight: bool,
    pub(super) segment_size: bool,
    pub(super) time_line: bool,
}

impl Graphs {
    /// All of them, or none.
    pub(super) fn all(on: bool) -> Graphs {
        Graphs {
            throughput: on,
            rtt: on,
            time_sequence: on,
            in_flight: on,
            segment_size: on,
            time_line: on,
        }
    }

    pub(super) fn any(self) -> bool {
        self != Graphs::default()
    }
}

/// The warnings to print while packets are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Warnings {
    pub(super) time: bool,
    pub(super) truncated: bool,
    pub(super) reserved: bool,
    pub(super) duplicates: bool,
    pub(super) checksums: bool,
    pub(super) sequences: bool,
    /// `-w`: all of them, and counts of packets by kind at the end.
    pub(super) summary: bool,
}

/// Everything that was typed.
#[derive(Debug, Clone)]
pub(super) struct LowArgs {
    pub(super) files: Vec<PathBuf>,
    /// `why` is the first word.
    pub(super) why: bool,
    pub(super) help: Option<Help>,

    pub(super) brief: bool,
    pub(super) rtt: bool,
    pub(super) owin: bool,
    pub(super) quiet: bool,
    pub(super) csv: bool,
    pub(super) tsv: bool,
    pub(super) separator: Option<String>,
    pub(super) json: bool,
    pub(super) parquet: Option<PathBuf>,
    pub(super) columns: Option<String>,
    pub(super) details: bool,
    /// Width in nanoseconds.
    pub(super) intervals: Option<i64>,

    pub(super) graphs: Graphs,
    pub(super) svg: bool,
    pub(super) html: bool,
    pub(super) colour: bool,
    pub(super) average: u32,
    pub(super) time_from_zero: bool,
    pub(super) sequence_from_zero: bool,
    pub(super) instantaneous: bool,
    pub(super) show: Shows,
    pub(super) title_prefix: Option<String>,

    pub(super) only: Numbers,
    pub(super) ignored: Numbers,
    pub(super) only_udp: Numbers,
    pub(super) ignored_udp: Numbers,
    pub(super) complete: bool,
    pub(super) filter: Option<String>,
    pub(super) first: u64,
    pub(super) last: u64,

    pub(super) udp: bool,
    pub(super) rtt_dump: bool,
    pub(super) contents: bool,
    pub(super) save: Option<PathBuf>,
    pub(super) print_all: bool,
    pub(super) print: bool,
    pub(super) print_data: bool,
    pub(super) relative: bool,
    pub(super) hex: bool,
    pub(super) output_dir: Option<PathBuf>,
    pub(super) output_prefix: Option<String>,

    pub(super) host_names: bool,
    pub(super) port_names: bool,
    pub(super) short_names: bool,

    pub(super) progress: bool,
    pub(super) debug: u32,
    pub(super) warn: Warnings,
    pub(super) checksum: bool,
    pub(super) continuous: bool,
    pub(super) closings: Option<bool>,
    pub(super) interval: f64,

    /// The interface to capture.
    pub(super) live: Option<String>,
    pub(super) snap: Option<u32>,
    pub(super) promiscuous: bool,
    pub(super) ring: Option<u64>,
    /// In nanoseconds.
    pub(super) duration: Option<i64>,
    pub(super) every: Option<i64>,
    pub(super) write: Option<PathBuf>,

    pub(super) threads: Option<usize>,
    pub(super) part: Option<(u32, u32)>,
    pub(super) part_file: Option<PathBuf>,
    pub(super) merge: bool,
    pub(super) memory: u64,
    pub(super) idle: i64,
    pub(super) idle_closed: i64,
    pub(super) realm: bool,
    pub(super) resync: bool,
}

impl Default for LowArgs {
    // long: one line for each option
    fn default() -> Self {
        LowArgs {
            files: Vec::new(),
            why: false,
            help: None,
            brief: true,
            rtt: false,
            owin: false,
            quiet: false,
            csv: false,
            tsv: false,
            separator: None,
            json: false,
            parquet: None,
            columns: None,
            details: false,
            intervals: None,
            graphs: Graphs::default(),
            svg: false,
            html: false,
            colour: true,
            average: 10,
            time_from_zero: false,
            sequence_from_zero: false,
            instantaneous: true,
            show: Shows {
                sacks: true,
                retransmissions: true,
                out_of_order: true,
                zero_window: true,
                urgent: true,
                rtt_dongles: false,
                triple_duplicates: true,
                empty_segments: true,
                probes: true,
                title: true,
                window_line: true,
            },
            title_prefix: None,
            only: Numbers::default(),
            ignored: Numbers::default(),
            only_udp: Numbers::default(),
            ignored_udp: Numbers::default(),
            complete: false,
            filter: None,
            first: 0,
            last: 0,
            udp: false,
            rtt_dump: false,
            contents: false,
            save: None,
            print_all: false,
            print: false,
            print_data: false,
            relative: false,
            hex: true,
            output_dir: None,
            output_prefix: None,
            host_names: false,
            port_names: false,
            short_names: false,
            progress: true,
            debug: 0,
            warn: Warnings::default(),
            checksum: false,
            continuous: false,
            closings: None,
            interval: 30.0,
            live: None,
            snap: None,
            promiscuous: false,
            ring: None,
            duration: None,
            every: None,
            write: None,
            threads: None,
            part: None,
            part_file: None,
            merge: false,
            memory: 2 << 30,
            idle: trace::IDLE,
            idle_closed: trace::IDLE_CLOSED,
            realm: false,
            resync: true,
        }
    }
}

impl LowArgs {
    /// Reads the command line, without the verb.
    ///
    /// # Errors
    /// A flag or value is wrong.
    pub(super) fn parse(words: &[OsString]) -> Result<LowArgs, Usage> {
        let mut args = LowArgs::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                args.files.push(PathBuf::from(word));
                continue;
            };
            let mut next = || words.next().and_then(|word| word.to_str());
            if text == "--" {
                args.files.extend(words.map(PathBuf::from));
                break;
            } else if let Some(name) = text.strip_prefix("--") {
                args.long(name, &mut next)?;
            } else if text.len() > 1 && text.starts_with(['-', '+']) {
                args.cluster(text, &mut next)?;
            } else {
                args.files.push(PathBuf::from(text));
            }
        }
        Ok(args)
    }

    /// `-lnrW`, `-o3-5`, `+t`.
    fn cluster<'w>(
        &mut self,
        word: &'w str,
        next: &mut dyn FnMut() -> Option<&'w str>,
    ) -> Result<(), Usage> {
        let on = word.starts_with('-');
        let sign = if on { '-' } else { '+' };
        let mut letters = word[1..].chars();
        while let Some(letter) = letters.next() {
            let named = format!("{sign}{letter}");
            let flag = flags::by_letter(letter).ok_or_else(|| {
                Usage(match letter {
                    'x' => "-x: tcptrace's modules are not part of this program".into(),
                    'm' => "-m is obsolete in tcptrace and does not exist here".into(),
                    _ => format!("{named} is not a flag (see --help)"),
                })
            })?;
            let rest = letters.as_str();
            match flag.act {
                Act::Switch(set) => set(self, on),
                Act::Suffix(_, set) => {
                    set(self, rest, on).map_err(|why| Usage(format!("{named}: {why}")))?;
                    return Ok(());
                }
                _ if !on => return Err(Usage(format!("{named}: only switches can be reversed"))),
                Act::Value(what, set) => {
                    let value = Some(rest).filter(|rest| !rest.is_empty());
                    let value = value
                        .or_else(&mut *next)
                        .ok_or_else(|| Usage(format!("{named} needs {what}")))?;
                    set(self, value).map_err(|why| Usage(format!("{named}: {why}")))?;
                    return Ok(());
                }
                Act::Joined(..) | Act::Ignored | Act::IgnoredValue(_) => {}
            }
        }
        Ok(())
    }

    /// `--csv`, `--nocsv`, `--sv=;`, `--threads 2`, `--oTCP3-5`.
    fn long<'w>(
        &mut self,
        name: &'w str,
        next: &mut dyn FnMut() -> Option<&'w str>,
    ) -> Result<(), Usage> {
        if let Some((flag, value)) = flags::joined(name) {
            if let Act::Joined(_, set) = flag.act {
                let value = value.strip_prefix('=').unwrap_or(value);
                set(self, value).map_err(|why| Usage(format!("--{}: {why}", flag.long)))?;
            }
            return Ok(());
        }
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, None),
        };
        let found = flags::by_name(name, value.is_some())?;
        let Flag { long, act, .. } = *found.flag;
        match (act, value) {
            (Act::Switch(_) | Act::Ignored, Some(_)) => {
                return Err(Usage(format!("--{long} takes no value")));
            }
            (Act::Switch(set), None) => set(self, found.on),
            (Act::Value(what, set), value) => {
                let value = value
                    .or_else(next)
                    .ok_or_else(|| Usage(format!("--{long} needs {what}")))?;
                set(self, value).map_err(|why| Usage(format!("--{long}: {why}")))?;
            }
            (Act::Suffix(_, set), value) => {
                set(self, value.unwrap_or(""), found.on)
                    .map_err(|why| Usage(format!("--{long}: {why}")))?;
            }
            (Act::IgnoredValue(what), None) => {
                next().ok_or_else(|| Usage(format!("--{long} needs {what}")))?;
            }
            (Act::Ignored | Act::IgnoredValue(_) | Act::Joined(..), _) => {}
        }
        Ok(())
    }

    /// `-z`, `-zx`, `-zy`, `-zxy`.
    pub(super) fn zero_axes(&mut self, axes: &str, on: bool) -> Result<(), String> {
        let (time, sequence) = match axes.to_ascii_lowercase().as_str() {
            "" | "x" => (true, false),
            "y" => (false, true),
            "xy" | "yx" => (true, true),
            _ => return Err("write -z, -zx, -zy or -zxy, as the last of its word".into()),
        };
        if time {
            self.time_from_zero = on;
        }
        if sequence {
            self.sequence_from_zero = on;
        }
        Ok(())
    }

    /// `-h`, `-hfilter` and the like.
    pub(super) fn help_topic(&mut self, topic: &str) {
        self.help = Some(match topic {
            _ if topic.starts_with("filt") => Help::Filter,
            _ if topic.starts_with("out") => Help::Output,
            _ if topic.starts_with("hint") || topic.starts_with("int") => Help::Hints,
            _ if topic.starts_with("conf") => Help::Formats,
            _ => Help::Arguments,
        });
    }

    pub(super) fn warn_all(&mut self, on: bool) {
        self.warn = Warnings {
            time: on,
            truncated: on,
            reserved: on,
            duplicates: on,
            checksums: on,
            sequences: on,
            summary: on,
        };
    }

    /// `-i`: as [`LowArgs::numbers`], or the name of an interface to capture, as tcpdump has it. A file of that name comes
    /// first.
    pub(super) fn ignored_or_interface(&mut self, text: &str) -> Result<(), String> {
        let is_list = text.starts_with(|c: char| c.is_ascii_digit()) || Path::new(text).exists();
        let is_interface =
            || text == reactor::capture::ANY || reactor::port::Link::of(text).is_ok();
        if !is_list && is_interface() {
            self.live = Some(text.to_owned());
            return Ok(());
        }
        self.ignored.add(LowArgs::numbers(text)?);
        Ok(())
    }

    /// `-i`, `-o` and their long forms: a list, or the name of a file with one.
    pub(super) fn numbers(text: &str) -> Result<Numbers, String> {
        values::numbers_or_file(text)
    }
}

#[cfg(test)]
mod tests;
