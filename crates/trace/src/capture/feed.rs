//! Reads all files, one after the other, as blocks of records. Faults are noted in a report for each file.

use std::io;
use std::sync::Arc;

use capfile::{Block, Reader};

use super::Event;
use super::findings::FileReport;
use super::input::{self, Input, Opened, Source, Stop, Tap};

/// Reads blocks.
pub(super) struct Feed {
    inputs: Vec<Input>,
    /// The next input.
    next: usize,
    current: Option<Current>,
    stop: Arc<dyn Stop>,
    pub(super) report: Box<dyn FnMut(Event<'_>) + Send>,
    /// One for each input.
    pub(super) reports: Vec<FileReport>,
    /// Files that could be opened.
    pub(super) opened: usize,
}

struct Current {
    from: Origin,
    /// A block that was read to find the file's first time stamp.
    first: Option<Block>,
    index: usize,
}

/// Where blocks come from.
enum Origin {
    File(Box<Reader<Tap>>),
    Packets(Box<dyn Source>),
}

impl Origin {
    fn read_block(&mut self, block: &mut Block) -> io::Result<bool> {
        match self {
            Origin::File(reader) => reader.read_block(block),
            Origin::Packets(source) => source.read(block),
        }
    }
}

impl Feed {
    /// Orders the inputs by time, for which several files are opened. One file is not opened yet.
    pub(super) fn new(mut inputs: Vec<Input>, stop: Arc<dyn Stop>) -> Feed {
        input::order(&mut inputs, &stop);
        let reports = inputs.iter().map(|input| FileReport {
            name: input.name.clone(),
            size: input.size(),
            ..FileReport::default()
        });
        Feed {
            reports: reports.collect(),
            inputs,
            next: 0,
            current: None,
            stop,
            report: Box::new(|_| {}),
            opened: 0,
        }
    }

    /// Names of the files in the order they are read.
    pub(super) fn names(&self) -> Vec<String> {
        self.inputs.iter().map(|input| input.name.clone()).collect()
    }

    /// Whether one of them is a pipe or the like.
    pub(super) fn is_live(&self) -> bool {
        self.inputs.iter().any(Input::is_pipe)
    }

    /// Whether one of them is a source of packets.
    pub(super) fn has_packets(&self) -> bool {
        self.inputs.iter().any(Input::has_packets)
    }

    /// Bytes in all regular files together.
    pub(super) fn size(&self) -> u64 {
        self.inputs.iter().filter_map(Input::size).sum()
    }

    /// Replaces the block by the next one and returns the index of its file. `None` at the end of all files, or after a
    /// signal.
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
            if let Some(first) = current.first.take() {
                *block = first;
                if !block.is_empty() {
                    return Some(index as u32);
                }
                continue;
            }
            match current.from.read_block(block) {
                Ok(true) => {
                    if let Origin::File(reader) = &current.from {
                        (self.report)(Event::Read(reader.consumed()));
                    }
                    return Some(index as u32);
                }
                Ok(false) => {}
                Err(error) => self.reports[index].error = Some(error.into()),
            }
            self.end_file();
        }
    }

    /// Ends the reading, whether or not all was read.
    pub(super) fn end(&mut self) {
        self.end_file();
        self.next = self.inputs.len();
        (self.report)(Event::Ended);
    }

    fn open(&mut self) {
        let index = self.next;
        self.next += 1;
        let input = &mut self.inputs[index];
        if let Some(source) = input.take_packets() {
            self.opened += 1;
            self.current = Some(Current {
                from: Origin::Packets(source),
                first: None,
                index,
            });
            return;
        }
        match input.open(&self.stop) {
            Ok(Opened { reader, first }) => {
                self.opened += 1;
                (self.report)(Event::Opened {
                    file: &input.name,
                    format: reader.format(),
                    compression: reader.compression(),
                });
                self.current = Some(Current {
                    from: Origin::File(Box::new(reader)),
                    first,
                    index,
                });
            }
            Err(error) => {
                self.reports[index].error = Some(error.into());
                (self.report)(Event::Closed(&self.reports[index]));
            }
        }
    }

    fn end_file(&mut self) {
        if let Some(current) = self.current.take() {
            let report = &mut self.reports[current.index];
            if let Origin::File(reader) = &current.from {
                report.set_faults(reader.faults(), self.stop.is_set());
                report.statistics = reader.statistics();
            }
            (self.report)(Event::Closed(report));
        }
    }
}
