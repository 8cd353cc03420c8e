//! Reads all files to their end, or until a signal comes, and says what was wrong with them.

use std::io::Write;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use capfile::{Block, Fault, Faults};
use trace::text;

use super::columns::Summary;
use super::input::{self, Input, Opened, Stop};
use super::pipeline::{Machine, Watch};
use super::report::{Paper, Results, Style};
use super::store::Store;
use super::tally::Tally;

/// What was read.
pub(super) struct Captured {
    pub(super) results: Results,
    /// Nothing was wrong with any file.
    pub(super) good: bool,
}

/// Reads what the command line names.
///
/// # Errors
/// Nothing at all could be read, or a temporary file cannot be written.
pub(super) fn read<W: Write>(style: &Style<'_>, paper: &mut Paper<W>) -> Result<Captured> {
    let args = style.args;
    let stop = Stop::new().context("cannot take signals")?;
    let mut inputs: Vec<Input> = args.low.files.iter().map(|path| Input::new(path)).collect();
    input::order(&mut inputs, &stop);
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    if !args.is_data() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let _ = text::arguments(paper.text(), &names, style.head());
        paper.flush()?;
    }
    let mut run = Run {
        stop,
        machine: Machine::new(args.plan, ()),
        store: Store::new(args.finished_memory),
        good: true,
        files_read: 0,
    };
    for (index, input) in inputs.iter_mut().enumerate() {
        if run.stop.is_set() {
            break;
        }
        run.machine.analyzer.set_file(index as u32);
        if !run.file(input)? {
            break;
        }
    }
    run.finish(names)
}

struct Run<W> {
    stop: Rc<Stop>,
    machine: Machine<W>,
    store: Store,
    good: bool,
    files_read: usize,
}

impl<W: Watch> Run<W> {
    /// Reads a file. False when no more is to be read.
    fn file(&mut self, input: &mut Input) -> Result<bool> {
        let opened = match input.open(&self.stop) {
            Ok(opened) => opened,
            Err(error) => {
                eprintln!("headend: {}: {error}", input.name);
                self.good = false;
                return Ok(true);
            }
        };
        self.files_read += 1;
        let Opened {
            mut reader, begun, ..
        } = opened;
        let mut more = true;
        if let Some(block) = begun {
            more = self.machine.block(&block);
            self.between()?;
        }
        let mut block = Block::new();
        while more {
            match reader.read_block(&mut block) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    eprintln!("headend: {}: {error}", input.name);
                    self.good = false;
                    break;
                }
            }
            more = self.machine.block(&block);
            self.between()?;
            if self.stop.is_set() && input.is_regular() {
                more = false;
            }
        }
        self.faults(&input.name, reader.faults());
        Ok(more && !self.stop.is_set())
    }

    /// Keeps what has finished.
    fn between(&mut self) -> Result<()> {
        if self.machine.analyzer.has_finished() {
            let finished = self.machine.analyzer.take_finished();
            self.store
                .push(finished)
                .context("cannot write to a temporary file")?;
        }
        Ok(())
    }

    /// Says what was wrong with a file.
    fn faults(&mut self, name: &str, faults: &Faults) {
        // A pipe that a signal ended was not broken before.
        let interrupted = self.stop.is_set();
        let counts = faults
            .iter()
            .filter(|&(fault, _)| !(interrupted && fault == Fault::Truncated));
        let counts: Vec<_> = counts.collect();
        let Some((offset, first)) = faults.first() else {
            return;
        };
        if counts.is_empty() {
            return;
        }
        self.good = false;
        eprintln!("headend: {name}: at octet {offset}: {first}");
        for (fault, count) in counts {
            let effect = match fault.effect() {
                capfile::Effect::Kept => "taken all the same",
                capfile::Effect::Skipped => "skipped",
                capfile::Effect::Ended => "nothing after it was read",
            };
            eprintln!("headend: {name}: {count} x {fault}: {effect}");
        }
    }

    /// All is read: finishes all connections.
    fn finish(mut self, files: Vec<String>) -> Result<Captured> {
        if self.files_read == 0 {
            bail!("nothing could be read");
        }
        self.machine.analyzer.finish();
        self.between()?;
        let limits = self.machine.analyzer.limits();
        let tally = &self.machine.tally;
        let summary = Summary {
            finished_early: limits.finished_early,
            flights_cut: limits.flights_cut,
            connections: self.store.len() as u64,
            ..summary(tally)
        };
        if limits.finished_early > 0 {
            eprintln!(
                "headend: memory ran out: {} connections were ended early, and their later packets count as others \
                 (see --memory)",
                limits.finished_early
            );
        }
        if limits.flights_cut > 0 {
            eprintln!(
                "headend: memory ran out: segments in flight were given up {} times, and their retransmissions are \
                 not timed (see --memory)",
                limits.flights_cut
            );
        }
        if self.store.written() > 0 {
            eprintln!(
                "headend: {} octets of finished connections were kept in a temporary file (see --memory)",
                self.store.written()
            );
        }
        Ok(Captured {
            results: Results {
                store: self.store,
                flows: Vec::new(),
                files,
                summary,
            },
            good: self.good,
        })
    }
}

/// What was seen, as reports have it.
pub(super) fn summary(tally: &Tally) -> Summary {
    Summary {
        first_time: tally.first_time,
        last_time: tally.first_time.map(|_| tally.last_time),
        packets: tally.packets,
        tcp_seen: tally.tcp_seen,
        too_short: tally.too_short,
        seen: tally.lines(),
        tcp: tally.tcp,
        ..Summary::default()
    }
}
