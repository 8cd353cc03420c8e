//! Collects the strokes of a file until there are enough to format. Also defines the traits of the
//! code that formats and writes them.

use super::page::Page;
use super::pen::Pen;
use super::stroke::Stroke;

/// A file, as its [`Sink`] or [`Studio`] numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// Owns the files. There may be more files than descriptors: a sink may close a file between two writes and open it
/// again to append. A sink keeps its own errors.
pub trait Sink {
    /// A new, empty file of this name.
    fn open(&mut self, name: &str) -> FileId;
    /// Appends to it.
    fn write(&mut self, file: FileId, octets: &[u8]);
    /// The file is complete.
    fn close(&mut self, file: FileId);
    /// Removes an unfinished file that is not needed.
    fn discard(&mut self, file: FileId);
}

/// Formats plot files, now or later, on any thread. The strokes of one file are formatted in order.
pub trait Studio {
    /// A new file of this name.
    fn open(&mut self, name: &str, page: Page) -> FileId;
    /// Strokes for it. They are taken, and the list is left empty.
    fn paint(&mut self, file: FileId, strokes: &mut Vec<Stroke>);
    /// The last strokes for it.
    fn close(&mut self, file: FileId, strokes: Vec<Stroke>);
    /// Removes an unfinished file that is not needed.
    fn discard(&mut self, file: FileId);
}

/// Formats at once.
#[derive(Debug, Default)]
pub struct Direct<S> {
    sink: S,
    pen: Pen,
    pages: Vec<Option<Page>>,
}

impl<S: Sink> Direct<S> {
    /// Into that sink.
    pub fn new(sink: S) -> Direct<S> {
        Direct {
            sink,
            pen: Pen::default(),
            pages: Vec::new(),
        }
    }

    /// The sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn put(&mut self, file: FileId, strokes: &[Stroke], last: bool) {
        let Direct { sink, pen, pages } = self;
        if let Some(Some(page)) = pages.get_mut(file.0 as usize) {
            page.paint(strokes, last, pen, |octets| sink.write(file, octets));
        }
    }
}

impl<S: Sink> Studio for Direct<S> {
    fn open(&mut self, name: &str, page: Page) -> FileId {
        let file = self.sink.open(name);
        let at = file.0 as usize;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        self.pages[at] = Some(page);
        file
    }

    fn paint(&mut self, file: FileId, strokes: &mut Vec<Stroke>) {
        self.put(file, strokes, false);
        strokes.clear();
    }

    fn close(&mut self, file: FileId, strokes: Vec<Stroke>) {
        self.put(file, &strokes, true);
        self.pages[file.0 as usize] = None;
        self.sink.close(file);
    }

    fn discard(&mut self, file: FileId) {
        self.pages[file.0 as usize] = None;
        self.sink.discard(file);
    }
}

/// Strokes of a file that are painted together.
const STROKES: usize = 1 << 10;

/// The studio, and the bytes of strokes queued for it.
#[derive(Debug)]
pub(super) struct Pool<S> {
    pub(super) studio: S,
    /// Memory in bytes that strokes take.
    pub(super) held: usize,
}

/// One file's end.
#[derive(Debug)]
pub(super) struct Plot {
    file: FileId,
    strokes: Vec<Stroke>,
}

/// Memory in bytes that `strokes` strokes take.
const fn octets(strokes: usize) -> usize {
    strokes * size_of::<Stroke>()
}

impl Plot {
    pub(super) fn new<S: Studio>(pool: &mut Pool<S>, name: &str, page: Page) -> Plot {
        Plot {
            file: pool.studio.open(name, page),
            strokes: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn draw<S: Studio>(&mut self, pool: &mut Pool<S>, stroke: Stroke) {
        if self.strokes.len() == self.strokes.capacity() {
            self.make_room(pool);
        }
        self.strokes.push(stroke);
    }

    /// Two strokes that are painted together.
    #[inline]
    pub(super) fn draw_both<S: Studio>(&mut self, pool: &mut Pool<S>, both: [Stroke; 2]) {
        if self.strokes.capacity() - self.strokes.len() < both.len() {
            self.make_room(pool);
        }
        self.strokes.extend_from_slice(&both);
    }

    #[cold]
    fn make_room<S: Studio>(&mut self, pool: &mut Pool<S>) {
        let before = self.strokes.capacity();
        if self.strokes.len() >= STROKES {
            pool.studio.paint(self.file, &mut self.strokes);
        }
        // Room doubles from 8 on.
        let wanted = (2 * before).clamp(8, STROKES);
        self.strokes
            .reserve_exact(wanted.saturating_sub(self.strokes.len()));
        pool.held = pool.held.saturating_sub(octets(before)) + octets(self.strokes.capacity());
    }

    /// Has all painted, and frees its room.
    pub(super) fn flush<S: Studio>(&mut self, pool: &mut Pool<S>) {
        let mut strokes = core::mem::take(&mut self.strokes);
        pool.held = pool.held.saturating_sub(octets(strokes.capacity()));
        if !strokes.is_empty() {
            pool.studio.paint(self.file, &mut strokes);
        }
    }

    /// Ends the file.
    pub(super) fn close<S: Studio>(self, pool: &mut Pool<S>, wanted: bool) {
        pool.held = pool.held.saturating_sub(octets(self.strokes.capacity()));
        if wanted {
            pool.studio.close(self.file, self.strokes);
        } else {
            pool.studio.discard(self.file);
        }
    }
}
