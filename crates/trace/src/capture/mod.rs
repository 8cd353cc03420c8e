//! Reads capture files and analyses them, on one thread or several. Only this module and [`crate::part`] do I/O, and
//! only this module starts threads.
//!
//! | module | what it does |
//! |---|---|
//! | `options` | [`Options`] of an analysis |
//! | `input` | opens files, pipes and standard input, and orders them by time |
//! | `feed` | reads all files as one sequence of blocks, and reports faults |
//! | `reading` | analyses on one thread, a block at a time |
//! | `threads` | analyses on several threads |
//! | `store` | keeps finished connections in memory and in a temporary file |
//! | `os` | the calls that differ between operating systems |
//! | `findings` | [`Findings`], the results |
//!
//! Start reading at [`Captures`].

mod feed;
mod findings;
mod input;
mod options;
mod os;
mod reading;
mod store;
mod threads;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use capfile::{Block, Compression, Format};

use crate::analyzer::Limits;
use crate::columns::Summary;
use crate::frozen::NotFrozen;
use crate::records::machine::Machine;
use crate::records::plan::Plan;
use crate::records::tally::Tally;
use crate::records::watch::Watch;

pub use findings::{Connections, FileError, FileReport, Findings};
pub use input::{Source, Stop};
pub use options::Options;
pub use reading::Reading;

use feed::Feed;
use input::Input;
use store::Store;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No file could be read. This is the error of the first one.
    #[error("{file}: cannot be read")]
    NothingRead {
        /// The file's name.
        file: String,
        /// Its error; none if a signal ended the analysis first.
        source: Option<FileError>,
    },
    /// The temporary file of finished connections cannot be written or read.
    #[error("cannot use a temporary file")]
    TemporaryFile(#[source] io::Error),
    /// The temporary file of finished connections was damaged.
    #[error("the temporary file is damaged")]
    Damaged(#[from] NotFrozen),
}

/// Reports progress while captures are read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A file was opened.
    Opened {
        /// Its name.
        file: &'a str,
        /// Its format.
        format: Format,
        /// Its compression.
        compression: Option<Compression>,
    },
    /// Bytes of the present file that have been read, before decompression.
    Read(u64),
    /// A file was read to its end, or could not be read.
    Closed(&'a FileReport),
    /// Packets and connections so far. An analysis on several threads does not report this.
    Counted {
        /// IP packets.
        packets: u64,
        /// TCP connections.
        connections: u64,
    },
    /// All files have been read.
    Ended,
}

/// Capture files to analyse as one capture. The crate's documentation has an example.
pub struct Captures {
    feed: Feed,
    plan: Plan,
    options: Options,
}

impl Captures {
    /// Captures in files. `-` is standard input. Several files are read in the order of their first packets.
    ///
    /// A file that cannot be read is not an error here: [`Findings::files`] reports it.
    #[must_use]
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, options: Options) -> Captures {
        Captures::open_until(paths, options, Arc::new(()))
    }

    /// Like [`Captures::open`], with a condition that ends the reading, such as a signal.
    #[must_use]
    pub fn open_until<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: Options,
        stop: Arc<dyn Stop>,
    ) -> Captures {
        let inputs = paths.into_iter().map(|path| Input::new(path.as_ref()));
        Captures::of(inputs.collect(), options, stop)
    }

    /// A capture from a reader, for example one in memory.
    #[must_use]
    pub fn from_reader(
        name: &str,
        reader: impl Read + Send + 'static,
        options: Options,
    ) -> Captures {
        Captures::from_readers([(name, Box::new(reader) as _)], options, Arc::new(()))
    }

    /// Like [`Captures::open_until`], from readers with names. Several are read in the order of their first packets.
    #[must_use]
    pub fn from_readers<N: Into<String>>(
        readers: impl IntoIterator<Item = (N, Box<dyn Read + Send>)>,
        options: Options,
        stop: Arc<dyn Stop>,
    ) -> Captures {
        let inputs = (readers.into_iter()).map(|(name, reader)| Input::from_reader(name, reader));
        Captures::of(inputs.collect(), options, stop)
    }

    /// A capture from a source of packets. If finished connections exceed the memory for them, [`Findings`] has the
    /// newest of them only: a capture of an interface may run for long.
    #[must_use]
    pub fn from_source(name: &str, source: Box<dyn Source>, options: Options) -> Captures {
        let input = Input::from_source(name, source);
        Captures::of(vec![input], options, Arc::new(()))
    }

    fn of(mut inputs: Vec<Input>, options: Options, stop: Arc<dyn Stop>) -> Captures {
        for input in &mut inputs {
            input.resync = options.resync;
        }
        Captures {
            feed: Feed::new(inputs, stop),
            plan: options.plan(),
            options,
        }
    }

    /// Names of the files in the order they are read.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        self.feed.names()
    }

    /// Whether one of the files is a pipe, a socket or the like, which may be silent for long.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.feed.is_live()
    }

    /// Bytes in all regular files together.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.feed.size()
    }

    /// Which packets and flows are analysed.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// Sets a function to call while the files are read. It may be called on any thread of the analysis.
    pub fn on_event(&mut self, report: impl FnMut(Event<'_>) + Send + 'static) {
        self.feed.report = Box::new(report);
    }

    /// Reads and analyses all files.
    ///
    /// # Errors
    /// No file can be read, or a temporary file cannot be written.
    pub fn read(mut self) -> Result<Findings, Error> {
        match self.options.threads(self.is_live()) {
            1 => {
                let mut machine = Machine::new(self.plan, ());
                // Packets of a pipe shall count when they arrive.
                if !self.is_live() {
                    machine.sort();
                }
                let reading = Reading::new(self.feed, &self.options, machine);
                reading.read().map(|(findings, ())| findings)
            }
            threads => {
                let store = Store::new(self.options.finished_memory());
                let next = |block: &mut Block| self.feed.next(block);
                let outcome = threads::run(&self.plan, threads, store, next);
                let store = outcome.store.map_err(Error::TemporaryFile)?;
                let counts = RunCounts {
                    tally: outcome.tally,
                    limits: outcome.limits,
                    connections: store.len() as u64,
                };
                counts.findings(self.feed, store, &self.options)
            }
        }
    }

    /// Reads and analyses all files on one thread, and shows each packet to an observer. Returns the observer too.
    ///
    /// # Errors
    /// Those of [`Captures::read`], and the observer's.
    pub fn read_with<W: Watch>(self, watch: W) -> Result<(Findings, W), W::Error> {
        self.start(watch).read()
    }

    /// Like [`Captures::read_with`], a block at a time, for a caller that has other work between the blocks.
    #[must_use]
    pub fn start<W: Watch>(self, watch: W) -> Reading<W> {
        Reading::new(self.feed, &self.options, Machine::new(self.plan, watch))
    }
}

/// The counts of a whole run, from which its summary is made.
pub(crate) struct RunCounts {
    pub(crate) tally: Tally,
    pub(crate) limits: Limits,
    pub(crate) connections: u64,
}

impl RunCounts {
    /// The results, after the files have been read.
    fn findings(
        &self,
        mut feed: Feed,
        mut store: Store,
        options: &Options,
    ) -> Result<Findings, Error> {
        feed.end();
        let mut files = feed.reports;
        if feed.opened == 0 {
            let first = files.first_mut().map(std::mem::take).unwrap_or_default();
            return Err(Error::NothingRead {
                file: first.name,
                source: first.error,
            });
        }
        store.sort();
        Ok(Findings {
            summary: self.summary(options.checksums),
            store,
            files,
        })
    }

    pub(crate) fn summary(&self, checksums: bool) -> Summary {
        let tally = &self.tally;
        Summary {
            first_time: tally.first_time,
            last_time: tally.first_time.map(|_| tally.last_time),
            packets: tally.packets,
            tcp_seen: tally.tcp_seen,
            too_short: tally.too_short,
            bad_checksums: checksums.then_some(tally.bad_checksums),
            seen: tally.lines(),
            tcp: tally.tcp,
            connections: self.connections,
            finished_early: self.limits.finished_early,
            closed_early: self.limits.closed_early,
            flights_cut: self.limits.flights_cut,
            ..Summary::default()
        }
    }
}
