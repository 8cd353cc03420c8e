//! All files, one after the other, as blocks of records; what is wrong with each is said when it ends.

use std::io;
use std::sync::Arc;

use anyhow::{Context, Result};
use capfile::{Block, Effect, Fault, Faults, Reader};

use super::hi::HiArgs;
use super::input::{self, Input, Opened, Stop, Tap};
use super::progress::Progress;

/// Gives blocks.
pub(super) struct Feed {
    inputs: Vec<Input>,
    /// The next input.
    next: usize,
    current: Option<Current>,
    stop: Arc<Stop>,
    pub(super) progress: Progress,
    debug: bool,
    /// Nothing was wrong so far.
    pub(super) good: bool,
    /// Files that could be opened.
    pub(super) read: usize,
}

struct Current {
    reader: Reader<Tap>,
    begun: Option<Block>,
    index: usize,
    size: u64,
}

impl Feed {
    /// Opens nothing yet, but for looking at how several files follow each other.
    ///
    /// # Errors
    /// Signals cannot be taken.
    pub(super) fn new(args: &HiArgs) -> Result<Feed> {
        let low = &args.low;
        let stop = Stop::new().context("cannot take signals")?;
        let mut inputs: Vec<Input> = low.files.iter().map(|path| Input::new(path)).collect();
        input::order(&mut inputs, &stop);
        let size = inputs.iter().filter_map(Input::size).sum();
        let live = low.live == Some(true) || inputs.iter().any(Input::is_pipe);
        Ok(Feed {
            progress: Progress::new(low.progress && !low.quiet, size, live, low.interval),
            inputs,
            next: 0,
            current: None,
            stop,
            debug: low.debug > 0,
            good: true,
            read: 0,
        })
    }

    /// Names of the files in the order they are read.
    pub(super) fn names(&self) -> Vec<String> {
        self.inputs.iter().map(|input| input.name.clone()).collect()
    }

    /// Whether one of them is a pipe or the like.
    pub(super) fn is_live(&self) -> bool {
        self.inputs.iter().any(Input::is_pipe)
    }

    /// What listens to signals.
    pub(super) fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// Replaces the block by the next one, and says which file it is from. `None` at the end of all files, or when a
    /// signal came.
    pub(super) fn next(&mut self, block: &mut Block) -> Option<u32> {
        loop {
            let Some(current) = &mut self.current else {
                if self.next >= self.inputs.len() || self.stop.is_set() {
                    return None;
                }
                self.open();
                continue;
            };
            let index = current.index;
            if self.inputs[index].is_regular() && self.stop.is_set() {
                self.end_file();
                return None;
            }
            if let Some(begun) = current.begun.take() {
                *block = begun;
                if !block.is_empty() {
                    return Some(index as u32);
                }
                continue;
            }
            match current.reader.read_block(block) {
                Ok(true) => {
                    self.progress.at(current.reader.consumed());
                    return Some(index as u32);
                }
                Ok(false) => {}
                Err(error) => self.fail(index, &error),
            }
            self.end_file();
        }
    }

    /// No more blocks are wanted.
    pub(super) fn end(&mut self) {
        self.end_file();
        self.next = self.inputs.len();
        self.progress.finish();
    }

    fn open(&mut self) {
        let index = self.next;
        self.next += 1;
        match self.inputs[index].open(&self.stop) {
            Ok(Opened {
                reader,
                begun,
                size,
            }) => {
                self.read += 1;
                if self.debug {
                    let compression = reader.compression();
                    let compression = compression.map_or(String::new(), |kind| format!(", {kind}"));
                    let name = &self.inputs[index].name;
                    eprintln!("headend: {name}: {}{compression}", reader.format());
                }
                self.current = Some(Current {
                    reader,
                    begun,
                    index,
                    size: size.unwrap_or(0),
                });
            }
            Err(error) => {
                eprintln!("headend: {}: {error}", self.inputs[index].name);
                self.good = false;
            }
        }
    }

    fn fail(&mut self, index: usize, error: &io::Error) {
        eprintln!("headend: {}: {error}", self.inputs[index].name);
        self.good = false;
    }

    fn end_file(&mut self) {
        if let Some(current) = self.current.take() {
            self.progress.file_done(current.size);
            self.faults(current.index, current.reader.faults());
        }
    }

    /// Says what was wrong with a file.
    fn faults(&mut self, index: usize, faults: &Faults) {
        // A pipe that a signal ended was not broken before.
        let interrupted = self.stop.is_set();
        let mut counts: Vec<(Fault, u64)> = faults.iter().collect();
        counts.retain(|&(fault, _)| !(interrupted && fault == Fault::Truncated));
        let Some((offset, first)) = faults.first().filter(|_| !counts.is_empty()) else {
            return;
        };
        self.good = false;
        let name = &self.inputs[index].name;
        eprintln!("headend: {name}: first fault at octet {offset}: {first}");
        for (fault, count) in counts {
            let effect = match fault.effect() {
                Effect::Kept => "taken all the same",
                Effect::Skipped => "skipped",
                Effect::Ended => "nothing after it was read",
            };
            eprintln!("headend: {name}: {count} x {fault} ({effect})");
        }
    }
}
