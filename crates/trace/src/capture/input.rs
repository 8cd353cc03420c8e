//! Opens files, pipes and standard input, and orders them by their first time stamps.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capfile::{Block, OpenError, Reader};

use super::os;

/// A condition that ends the reading, such as a signal. The results then cover the packets read so far.
pub trait Stop: Send + Sync {
    /// Whether to end the reading. The analysis calls this before each block of a regular file.
    fn is_set(&self) -> bool;

    /// Waits until a pipe or the like has something to read. False ends its reading.
    ///
    /// # Errors
    /// The operating system cannot wait.
    fn wait(&self, source: &File) -> io::Result<bool>;
}

/// Reads everything.
impl Stop for () {
    fn is_set(&self) -> bool {
        false
    }
    fn wait(&self, _: &File) -> io::Result<bool> {
        Ok(true)
    }
}

/// A source of packets that is no file, such as a network interface.
pub trait Source: Send {
    /// Replaces the contents of the block by the next packets, after waiting for them. It may return with an empty block,
    /// so that observers can do timed work. False at the end, with an empty block.
    ///
    /// # Errors
    /// The source ended against expectation. All packets before have been returned, and none follow.
    fn read(&mut self, block: &mut Block) -> io::Result<bool>;
}

/// The source of a reader's bytes.
pub(super) enum Tap {
    File(File),
    /// A pipe or the like, which may be silent for long.
    Live(File, Arc<dyn Stop>),
    Other(Box<dyn Read + Send>),
}

impl Read for Tap {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Tap::File(file) => file.read(out),
            Tap::Live(file, stop) => match stop.wait(file)? {
                true => file.read(out),
                false => Ok(0),
            },
            Tap::Other(reader) => reader.read(out),
        }
    }
}

/// An input of the analysis.
pub(super) struct Input {
    /// Its name as given.
    pub(super) name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// A source that has no path.
    source: Option<Box<dyn Read + Send>>,
    /// A source of packets.
    packets: Option<Box<dyn Source>>,
    /// An input that cannot be read again, and the block that was read to find its first time stamp.
    begun: Option<(Reader<Tap>, Block)>,
    first_time: Option<i64>,
    kind: Kind,
    /// Look for the next record after a fault.
    pub(super) resync: bool,
}

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file of that many bytes.
    Regular(u64),
    /// A pipe, socket or device, which may be silent for long.
    Pipe,
    /// Anything else, such as a directory or a file that is not there.
    Other,
}

/// An input that is open.
pub(super) struct Opened {
    pub(super) reader: Reader<Tap>,
    /// Records that have been read already.
    pub(super) first: Option<Block>,
}

impl Input {
    pub(super) fn new(path: &Path) -> Input {
        let standard = path == Path::new("-") || path == Path::new("stdin");
        let mut input = Input {
            name: path.display().to_string(),
            path: (!standard).then(|| path.to_owned()),
            source: None,
            packets: None,
            begun: None,
            first_time: None,
            kind: Kind::Other,
            resync: true,
        };
        input.kind = input.kind();
        input
    }

    pub(super) fn from_reader(name: impl Into<String>, source: Box<dyn Read + Send>) -> Input {
        Input {
            name: name.into(),
            path: None,
            source: Some(source),
            packets: None,
            begun: None,
            first_time: None,
            kind: Kind::Other,
            resync: true,
        }
    }

    pub(super) fn from_source(name: impl Into<String>, packets: Box<dyn Source>) -> Input {
        Input {
            name: name.into(),
            path: None,
            source: None,
            packets: Some(packets),
            begun: None,
            first_time: None,
            kind: Kind::Pipe,
            resync: true,
        }
    }

    /// The source of packets, if it has one.
    pub(super) fn take_packets(&mut self) -> Option<Box<dyn Source>> {
        self.packets.take()
    }

    /// Whether it is a source of packets.
    pub(super) fn has_packets(&self) -> bool {
        self.packets.is_some()
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
        } else if os::is_pipe(kind) {
            Kind::Pipe
        } else {
            Kind::Other
        }
    }

    fn file(&self) -> io::Result<File> {
        match &self.path {
            Some(path) => File::open(path),
            None => os::standard_input(),
        }
    }

    /// Whether it is a regular file. A signal ends its reading at once.
    pub(super) fn is_regular(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Whether it is a pipe or the like.
    pub(super) fn is_pipe(&self) -> bool {
        self.kind == Kind::Pipe
    }

    /// Its size in bytes, if it is a regular file.
    pub(super) fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::Regular(size) => Some(size),
            Kind::Pipe | Kind::Other => None,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// It cannot be read, or is not a capture.
    pub(super) fn open(&mut self, stop: &Arc<dyn Stop>) -> Result<Opened, OpenError> {
        if let Some((reader, block)) = self.begun.take() {
            return Ok(Opened {
                reader,
                first: Some(block),
            });
        }
        let tap = match self.source.take() {
            Some(source) => Tap::Other(source),
            None if self.is_pipe() => Tap::Live(self.file()?, Arc::clone(stop)),
            None => Tap::File(self.file()?),
        };
        let mut reader = Reader::new(tap)?;
        reader.set_resync(self.resync);
        let first = None;
        Ok(Opened { reader, first })
    }

    /// Finds when its first packet was captured.
    fn look(&mut self, stop: &Arc<dyn Stop>) {
        let Ok(mut opened) = self.open(stop) else {
            return;
        };
        let mut block = Block::new();
        // Its faults are reported when its turn comes.
        let _ = opened.reader.read_block(&mut block);
        self.first_time = block.records().first().map(|record| record.time_ns);
        if !self.is_regular() || self.path.is_none() {
            self.begun = Some((opened.reader, block));
        }
    }
}

/// Orders inputs by the time of their first packet. Inputs without one come last, in the given order.
pub(super) fn order(inputs: &mut [Input], stop: &Arc<dyn Stop>) {
    if inputs.len() < 2 {
        return;
    }
    for input in inputs.iter_mut() {
        input.look(stop);
    }
    inputs.sort_by_key(|input| (input.first_time.is_none(), input.first_time));
}
