//! Reads and analyses files on one thread, a block at a time.

use std::io;

use capfile::Block;

use super::feed::Feed;
use super::store::Store;
use super::{Error, Event, Findings, Options, RunCounts};
use crate::records::machine::Machine;
use crate::records::watch::Watch;

/// An analysis that has been started: see [`Captures::start`](super::Captures::start).
pub struct Reading<W: Watch> {
    feed: Feed,
    options: Options,
    machine: Machine<W>,
    kept: Kept,
    block: Block,
    /// Index of the present file.
    file: Option<u32>,
}

impl<W: Watch> Reading<W> {
    pub(super) fn new(feed: Feed, options: &Options, machine: Machine<W>) -> Reading<W> {
        let memory = options.finished_memory();
        Reading {
            kept: Kept {
                store: match feed.has_packets() {
                    true => Store::of_newest(memory),
                    false => Store::new(memory),
                },
                connections: 0,
            },
            feed,
            options: options.clone(),
            machine,
            block: Block::new(),
            file: None,
        }
    }

    /// Reads and analyses the next block, which is one read of a file, about 512 KiB. False at the end of all files.
    ///
    /// # Errors
    /// A temporary file cannot be written, and the observer's errors.
    pub fn step(&mut self) -> Result<bool, W::Error> {
        let Some(index) = self.feed.next(&mut self.block) else {
            return Ok(false);
        };
        let machine = &mut self.machine;
        if self.file.replace(index) != Some(index) {
            machine.set_file(index);
        }
        let more = machine.block(&self.block);
        machine.watch.block()?;
        machine.watch.look(&mut machine.analyzer)?;
        self.kept.take(machine)?;
        (self.feed.report)(Event::Counted {
            packets: machine.decoder.tally.packets,
            connections: machine.analyzer.connections(),
        });
        Ok(more)
    }

    /// The results of all blocks so far, and the observer.
    ///
    /// # Errors
    /// No file could be read, or a temporary file cannot be written, and the observer's errors.
    pub fn finish(self) -> Result<(Findings, W), W::Error> {
        let (mut machine, mut kept) = (self.machine, self.kept);
        machine.flush();
        kept.take(&mut machine)?;
        if W::FINISHED {
            machine.analyzer.finish();
            kept.take(&mut machine)?;
        } else {
            kept.adopt(&mut machine).map_err(Error::TemporaryFile)?;
        }
        machine.finish();
        let counts = RunCounts {
            limits: machine.analyzer.limits(),
            tally: machine.decoder.tally,
            connections: kept.connections,
        };
        let findings = counts.findings(self.feed, kept.store, &self.options)?;
        Ok((findings, machine.watch))
    }

    /// Reads all blocks.
    pub(super) fn read(mut self) -> Result<(Findings, W), W::Error> {
        while self.step()? {}
        self.finish()
    }
}

/// Finished connections on one thread.
struct Kept {
    store: Store,
    /// All that have finished, including those that the observer did not keep.
    connections: u64,
}

impl Kept {
    /// Takes the connections that have finished since the last call.
    fn take<W: Watch>(&mut self, machine: &mut Machine<W>) -> Result<(), W::Error> {
        if !machine.analyzer.has_finished() {
            return Ok(());
        }
        let finished = machine.analyzer.take_finished();
        self.connections += finished.len() as u64;
        let end = machine.decoder.tally.last_time;
        let finished = machine.watch.finished(finished, end)?;
        Ok(self.store.push(finished).map_err(Error::TemporaryFile)?)
    }

    /// Takes all other connections, at the end.
    fn adopt<W: Watch>(&mut self, machine: &mut Machine<W>) -> io::Result<()> {
        let count = machine.analyzer.held();
        self.connections += count as u64;
        let (entries, shelf) = machine.analyzer.finish_shelved();
        self.store.adopt(count, entries, shelf)
    }
}
