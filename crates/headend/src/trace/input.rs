//! Files and standard input: opened, ordered by their first time stamp, read until told to stop.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capfile::{Block, OpenError, Reader};
use reactor::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a pipe may be silent after a signal before it counts as ended, so that what wrote into it can write its
/// rest: the same Ctrl-C ends both.
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 300_000_000,
};

/// Signals that end the reading, not the report.
pub(super) struct Stop {
    signals: Signals,
    stopped: AtomicBool,
}

impl Stop {
    /// Takes SIGINT, SIGTERM and SIGHUP from here on.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn new() -> io::Result<Arc<Stop>> {
        Ok(Arc::new(Stop {
            signals: Signals::new()?,
            stopped: AtomicBool::new(false),
        }))
    }

    /// Whether a signal has come.
    pub(super) fn is_set(&self) -> bool {
        if !self.stopped.load(Ordering::Relaxed) {
            self.take();
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether another signal has come since.
    pub(super) fn again(&self) -> bool {
        matches!(self.signals.next_signal(), Ok(Some(_)))
    }

    fn take(&self) {
        if let Ok(Some(_)) = self.signals.next_signal() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until there is something to read. False when a signal came and there is nothing.
    fn wait(&self, source: &File) -> io::Result<bool> {
        loop {
            let stopped = self.stopped.load(Ordering::Relaxed);
            let mut watched = [
                PollFd::new(source, PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            ];
            match poll(&mut watched, stopped.then_some(&GRACE)) {
                Ok(0) => return Ok(false),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let ready = !watched[0].revents().is_empty();
            let signal = !watched[1].revents().is_empty();
            if signal && stopped && self.again() {
                return Ok(false);
            }
            if signal {
                self.take();
            }
            if ready {
                return Ok(true);
            }
        }
    }
}

/// What is read from.
pub(super) struct Tap {
    file: File,
    /// A pipe or the like, which may be silent for long.
    live: Option<Arc<Stop>>,
}

impl Read for Tap {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(stop) = &self.live
            && !stop.wait(&self.file)?
        {
            return Ok(0);
        }
        self.file.read(out)
    }
}

/// An input as it was named.
pub(super) struct Input {
    /// As typed.
    pub(super) name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// What had to be read of it to order it, where it cannot be read again.
    begun: Option<(Reader<Tap>, Block)>,
    first_time: Option<i64>,
    kind: Kind,
}

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file of that many octets.
    Regular(u64),
    /// Something that may be silent for long.
    Pipe,
    /// A directory, or nothing that can be looked at.
    Other,
}

/// An input that is open.
pub(super) struct Opened {
    pub(super) reader: Reader<Tap>,
    /// Records that have been read already.
    pub(super) begun: Option<Block>,
    /// Octets in it, where that is known.
    pub(super) size: Option<u64>,
}

impl Input {
    pub(super) fn new(path: &Path) -> Input {
        let standard = path == Path::new("-") || path == Path::new("stdin");
        let mut input = Input {
            name: path.display().to_string(),
            path: (!standard).then(|| path.to_owned()),
            begun: None,
            first_time: None,
            kind: Kind::Other,
        };
        input.kind = input.kind();
        input
    }

    fn kind(&self) -> Kind {
        let meta = match &self.path {
            Some(path) => std::fs::metadata(path),
            None => self.file().and_then(|file| file.metadata()),
        };
        let Ok(meta) = meta else {
            return Kind::Other;
        };
        let kind = meta.file_type();
        if kind.is_file() {
            Kind::Regular(meta.len())
        } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
            Kind::Pipe
        } else {
            Kind::Other
        }
    }

    fn file(&self) -> io::Result<File> {
        match &self.path {
            Some(path) => File::open(path),
            None => Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
        }
    }

    /// Whether it is a file, which a signal ends at once.
    pub(super) fn is_regular(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Whether it is a pipe or the like.
    pub(super) fn is_pipe(&self) -> bool {
        self.kind == Kind::Pipe
    }

    /// How many octets there are in it, where that is known.
    pub(super) fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::Regular(size) => Some(size),
            Kind::Pipe | Kind::Other => None,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// It cannot be read, or is no file of packets.
    pub(super) fn open(&mut self, stop: &Arc<Stop>) -> Result<Opened, OpenError> {
        let (reader, begun) = match self.begun.take() {
            Some((reader, block)) => (reader, Some(block)),
            None => {
                let live = self.is_pipe().then(|| Arc::clone(stop));
                let file = self.file()?;
                (Reader::new(Tap { file, live })?, None)
            }
        };
        Ok(Opened {
            reader,
            begun,
            size: self.size(),
        })
    }

    /// Finds when its first packet was captured.
    fn look(&mut self, stop: &Arc<Stop>) {
        let Ok(mut opened) = self.open(stop) else {
            return;
        };
        let mut block = Block::new();
        // What is wrong with it is said when it is its turn.
        let _ = opened.reader.read_block(&mut block);
        self.first_time = block.records().first().map(|record| record.time_ns);
        if !self.is_regular() || self.path.is_none() {
            self.begun = Some((opened.reader, block));
        }
    }
}

/// Orders inputs by the time of their first packet; those that have none come last, as they were named.
pub(super) fn order(inputs: &mut [Input], stop: &Arc<Stop>) {
    if inputs.len() < 2 {
        return;
    }
    for input in inputs.iter_mut() {
        input.look(stop);
    }
    inputs.sort_by_key(|input| (input.first_time.is_none(), input.first_time));
}
