//! A plot file in the making: its head, and a buffer that is appended to the file when it is full.

use super::pen::{Pen, Token};

/// A file, as its [`Sink`] numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// Where plot files go. There may be more of them than descriptors: a sink may close a file between two writes and
/// open it again to append. A sink keeps its own errors.
pub trait Sink {
    /// A new, empty file of this name.
    fn open(&mut self, name: &str) -> FileId;
    /// Appends to it.
    fn write(&mut self, file: FileId, octets: &[u8]);
    /// Nothing more comes for it.
    fn close(&mut self, file: FileId);
    /// It is not wanted after all.
    fn discard(&mut self, file: FileId);
}

/// A buffer is appended to its file at this size.
const BUFFER: usize = 1 << 15;

/// Files, and the octets that wait for them.
#[derive(Debug)]
pub(super) struct Pool<S> {
    pub(super) sink: S,
    /// Octets that buffers take.
    pub(super) held: usize,
}

/// One file's end.
#[derive(Debug)]
pub(super) struct Plot {
    file: FileId,
    buffer: Vec<u8>,
    /// What its times count from, in microseconds.
    zero: i64,
}

/// What stands at the head of a file.
pub(super) struct Head<'a> {
    /// Kinds of the axes.
    pub(super) axes: &'a str,
    /// `None` without titles.
    pub(super) title: Option<&'a str>,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

impl Plot {
    /// Creates a file. Its times count from `zero`.
    pub(super) fn new<S: Sink>(pool: &mut Pool<S>, name: &str, head: &Head<'_>, zero: i64) -> Plot {
        let file = pool.sink.open(name);
        let mut plot = Plot {
            file,
            buffer: Vec::new(),
            zero,
        };
        let mut text = String::with_capacity(200);
        text.push_str(head.axes);
        if let Some(title) = head.title {
            text.push_str("\ntitle\n");
            text.push_str(title);
        }
        for part in ["\nxlabel\n", head.x, "\nylabel\n", head.y, "\n"] {
            text.push_str(part);
        }
        plot.append(pool, text.as_bytes());
        plot
    }

    /// A time in microseconds as this file shows it; before the file's first, it is the first.
    #[inline]
    pub(super) fn time(&self, pen: &mut Pen, time: i64) -> Token {
        pen.time(self.relative(time))
    }

    /// The same without the space behind.
    pub(super) fn bare_time(&self, pen: &mut Pen, time: i64) -> Token {
        self.time(pen, time).bare()
    }

    /// A time, counted as this file does.
    #[inline]
    fn relative(&self, time: i64) -> i64 {
        if self.zero == 0 {
            time
        } else {
            time.saturating_sub(self.zero).max(0)
        }
    }

    /// Appends what the pen wrote.
    #[inline]
    pub(super) fn draw<S: Sink>(&mut self, pool: &mut Pool<S>, pen: &mut Pen) {
        let text = pen.take();
        if !text.is_empty() {
            self.append(pool, text);
        }
    }

    #[inline]
    fn append<S: Sink>(&mut self, pool: &mut Pool<S>, octets: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < octets.len() {
            self.make_room(pool, octets.len());
        }
        self.buffer.extend_from_slice(octets);
    }

    #[cold]
    fn make_room<S: Sink>(&mut self, pool: &mut Pool<S>, length: usize) {
        if self.buffer.capacity() >= BUFFER {
            pool.sink.write(self.file, &self.buffer);
            self.buffer.clear();
        }
        let before = self.buffer.capacity();
        let wanted = (self.buffer.len() + length).clamp(256, BUFFER);
        self.buffer
            .reserve_exact(wanted.next_power_of_two().max(length) - self.buffer.len());
        pool.held += self.buffer.capacity() - before;
    }

    /// Appends what waits to the file, and frees its room.
    pub(super) fn flush<S: Sink>(&mut self, pool: &mut Pool<S>) {
        let buffer = core::mem::take(&mut self.buffer);
        pool.held -= buffer.capacity();
        if !buffer.is_empty() {
            pool.sink.write(self.file, &buffer);
        }
    }

    /// Ends the file.
    pub(super) fn close<S: Sink>(mut self, pool: &mut Pool<S>, wanted: bool) {
        if wanted {
            self.append(pool, b"go\n");
            self.flush(pool);
            pool.sink.close(self.file);
        } else {
            pool.held -= self.buffer.capacity();
            pool.sink.discard(self.file);
        }
    }
}
