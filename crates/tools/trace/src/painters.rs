//! Formats and writes plot files on several threads.
//!
//! The analysing thread queues strokes of a file in batches. A free thread takes a file with queued strokes, formats
//! and writes them in order, and releases the file. If the queue is full, the analysing thread helps. The output,
//! several times the size of the capture, is thus written while the capture is read. The files do not depend on the
//! number of threads.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use trace::xplot::{FileId, Page, Pen, Stroke, Studio};

use super::written::Written;

/// Files kept open at a time.
const OPEN_MAX: usize = 200;

/// Limit of queued tasks for each thread.
const TASKS_PER_THREAD: usize = 32;

/// A task for a file.
enum Task {
    Paint(Vec<Stroke>),
    /// The last strokes.
    Close(Vec<Stroke>),
    Discard,
}

/// A file and its tasks.
struct Slot(Mutex<Desk>);

#[derive(Default)]
struct Desk {
    tasks: VecDeque<Task>,
    /// A thread works on it, or will.
    taken: bool,
    /// `None` while a thread works on it.
    canvas: Option<Box<Canvas>>,
}

/// A file that is being written.
struct Canvas {
    path: PathBuf,
    page: Page,
    file: Option<File>,
    /// Bytes written.
    length: u64,
    /// It has been created.
    created: bool,
}

#[derive(Default)]
struct Waiting {
    /// Files with tasks that no thread works on.
    slots: VecDeque<Arc<Slot>>,
    /// Unfinished tasks.
    tasks: usize,
    /// The first error; after it, nothing is written.
    wrong: Option<(PathBuf, io::Error)>,
    /// There will be no more tasks.
    ended: bool,
    /// A thread panicked, so some tasks will not be done.
    broken: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Signals that there are tasks, or that there will be no more.
    work: Condvar,
    /// Signals that a task is done.
    done: Condvar,
    open: AtomicUsize,
}

/// The threads that format and write.
pub(super) struct Painters {
    shared: Arc<Shared>,
    others: Vec<JoinHandle<()>>,
    pen: Pen,
    directory: Option<PathBuf>,
    slots: Vec<Option<Arc<Slot>>>,
    /// Names of the files in `slots`.
    names: Vec<String>,
    written: Written,
    free: Vec<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of one of them is reported at the end.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Painters {
    /// Writes to `directory` on `threads` threads, including the caller's.
    pub(super) fn new(threads: usize, directory: Option<PathBuf>) -> Painters {
        let shared = Arc::<Shared>::default();
        let others = (1..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.rest())
            })
            .collect();
        Painters {
            shared,
            others,
            pen: Pen::default(),
            directory,
            slots: Vec::new(),
            names: Vec::new(),
            written: Written::default(),
            free: Vec::new(),
        }
    }

    fn give(&mut self, id: FileId, task: Task) {
        let Some(Some(slot)) = self.slots.get(id.0 as usize) else {
            return;
        };
        let shared = &self.shared;
        // Counted before a thread can finish it.
        lock(&shared.waiting).tasks += 1;
        let mut desk = lock(&slot.0);
        desk.tasks.push_back(task);
        let taken = std::mem::replace(&mut desk.taken, true);
        drop(desk);
        if !taken {
            lock(&shared.waiting).slots.push_back(Arc::clone(slot));
            shared.work.notify_one();
        }
        let tasks_max = self.others.len() * TASKS_PER_THREAD;
        let mut waiting = lock(&shared.waiting);
        while waiting.tasks > tasks_max && !waiting.broken {
            waiting = shared.help(waiting, &mut self.pen);
        }
    }

    fn forget(&mut self, id: FileId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize)
            && slot.take().is_some()
        {
            self.free.push(id.0);
        }
    }

    /// Finishes all tasks and returns the files written or the first error.
    pub(super) fn finish(mut self) -> Result<Written, (PathBuf, io::Error)> {
        let mut waiting = lock(&self.shared.waiting);
        while waiting.tasks > 0 && !waiting.broken {
            waiting = self.shared.help(waiting, &mut self.pen);
        }
        let wrong = waiting.wrong.take();
        drop(waiting);
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(std::mem::take(&mut self.written)),
        }
    }
}

impl Drop for Painters {
    fn drop(&mut self) {
        lock(&self.shared.waiting).ended = true;
        self.shared.work.notify_all();
        for other in self.others.drain(..) {
            if let Err(panic) = other.join()
                && !std::thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Studio for Painters {
    fn open(&mut self, name: &str, page: Page) -> FileId {
        let path = match &self.directory {
            Some(directory) => directory.join(name),
            None => PathBuf::from(name),
        };
        let desk = Desk {
            canvas: Some(Box::new(Canvas {
                path,
                page,
                file: None,
                length: 0,
                created: false,
            })),
            ..Desk::default()
        };
        let slot = Some(Arc::new(Slot(Mutex::new(desk))));
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                name.clone_into(&mut self.names[id as usize]);
                FileId(id)
            }
            None => {
                self.slots.push(slot);
                self.names.push(name.to_owned());
                FileId((self.slots.len() - 1) as u32)
            }
        }
    }

    fn paint(&mut self, id: FileId, strokes: &mut Vec<Stroke>) {
        let room = strokes.capacity();
        let strokes = std::mem::replace(strokes, Vec::with_capacity(room));
        self.give(id, Task::Paint(strokes));
    }

    fn close(&mut self, id: FileId, strokes: Vec<Stroke>) {
        if let Some(name) = self.names.get(id.0 as usize) {
            self.written.add(name);
        }
        self.give(id, Task::Close(strokes));
        self.forget(id);
    }

    fn discard(&mut self, id: FileId) {
        self.give(id, Task::Discard);
        self.forget(id);
    }
}

impl Shared {
    /// The loop of a thread.
    fn rest(&self) {
        let _alarm = Alarm(self);
        let mut pen = Pen::default();
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(slot) = waiting.slots.pop_front() {
                drop(waiting);
                self.serve(&slot, &mut pen);
                waiting = lock(&self.waiting);
            } else if waiting.ended {
                return;
            } else {
                waiting = (self.work.wait(waiting)).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Does the tasks of a file, or waits until another thread has done some.
    fn help<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
        pen: &mut Pen,
    ) -> MutexGuard<'a, Waiting> {
        if let Some(slot) = waiting.slots.pop_front() {
            drop(waiting);
            self.serve(&slot, pen);
            return lock(&self.waiting);
        }
        (self.done.wait(waiting)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the tasks of a file.
    fn serve(&self, slot: &Slot, pen: &mut Pen) {
        let mut desk = lock(&slot.0);
        let Some(mut canvas) = desk.canvas.take() else {
            return;
        };
        loop {
            let tasks = std::mem::take(&mut desk.tasks);
            if tasks.is_empty() {
                desk.canvas = Some(canvas);
                desk.taken = false;
                return;
            }
            drop(desk);
            for task in tasks {
                let did = self.perform(&mut canvas, task, pen);
                let mut waiting = lock(&self.waiting);
                waiting.tasks -= 1;
                if let Err(error) = did
                    && waiting.wrong.is_none()
                {
                    waiting.wrong = Some((canvas.path.clone(), error));
                }
                drop(waiting);
                self.done.notify_one();
            }
            desk = lock(&slot.0);
        }
    }

    fn perform(&self, canvas: &mut Canvas, task: Task, pen: &mut Pen) -> io::Result<()> {
        let (strokes, last) = match task {
            Task::Paint(strokes) => (strokes, false),
            Task::Close(strokes) => (strokes, true),
            Task::Discard => {
                self.shut(canvas);
                if canvas.created {
                    // Another process may have removed it.
                    let _ = std::fs::remove_file(&canvas.path);
                }
                return Ok(());
            }
        };
        if lock(&self.waiting).wrong.is_some() {
            return Ok(());
        }
        let file = match &mut canvas.file {
            Some(file) => file,
            none => {
                let file = open(&canvas.path, canvas.created)?;
                canvas.created = true;
                self.open.fetch_add(1, Ordering::Relaxed);
                none.insert(file)
            }
        };
        let mut did = Ok(());
        let length = &mut canvas.length;
        canvas.page.paint(&strokes, last, pen, |octets| {
            if did.is_ok() {
                did = file.write_all_at(octets, *length);
                *length += octets.len() as u64;
            }
        });
        if last || self.open.load(Ordering::Relaxed) > OPEN_MAX {
            self.shut(canvas);
        }
        did
    }

    fn shut(&self, canvas: &mut Canvas) {
        if canvas.file.take().is_some() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Wakes the analysing thread if this one panics.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.waiting).broken = true;
            self.0.done.notify_all();
        }
    }
}

/// Opens a file, a new one unless it has been created.
fn open(path: &Path, created: bool) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(!created)
        .truncate(!created)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::TemporaryDirectory;
    use trace::xplot::{Direct, Graphs, Options, Plots, Sink};
    use trace::{Analyzer, Config, FlowKey, Segment};

    /// A connection's packets among those of others: data from one end, ACKs from the other.
    fn segments() -> Vec<Segment> {
        let ends = |port| {
            let (mut low, mut high) = ([0; 16], [0; 16]);
            (low[15], high[15]) = (1, 2);
            FlowKey::new(&low, port, &high, 80, 0).0
        };
        (0..60_000u32)
            .map(|number| {
                let round = number / 600;
                let from_low = round % 2 == 0;
                let time = i64::from(number) * 1_234_567;
                Segment {
                    number: u64::from(number) + 1,
                    time,
                    clock: time,
                    key: ends(1000 + (number % 300) as u16),
                    from_low,
                    version: 4,
                    flags: 16,
                    sequence: if from_low { 1 + round * 100 } else { 1 },
                    acknowledgment: if from_low { 1 } else { 1 + round * 100 },
                    window: 1000,
                    payload: if from_low { 100 } else { 0 },
                    ..Segment::default()
                }
            })
            .collect()
    }

    fn draw<S: Studio>(studio: S) -> S {
        let options = Options {
            graphs: Graphs::ALL,
            buffers_max: 1 << 20,
            ..Options::default()
        };
        let mut plots = Plots::new(options, studio);
        let mut analyzer = Analyzer::new(Config::default());
        for segment in &segments() {
            analyzer.packet(segment, &[], &mut plots);
        }
        plots.finish().0
    }

    /// Files in memory.
    #[derive(Default)]
    struct Memory(Vec<(String, Vec<u8>)>);

    impl Sink for Memory {
        fn open(&mut self, name: &str) -> FileId {
            self.0.push((name.to_owned(), Vec::new()));
            FileId(self.0.len() as u32 - 1)
        }
        fn write(&mut self, file: FileId, octets: &[u8]) {
            self.0[file.0 as usize].1.extend_from_slice(octets);
        }
        fn close(&mut self, _: FileId) {}
        fn discard(&mut self, _: FileId) {}
    }

    #[test]
    fn files_are_the_same_on_any_number_of_threads() {
        let expected = draw(Direct::new(Memory::default())).into_sink().0;
        assert!(expected.len() > 2 * OPEN_MAX);
        for threads in [1, 3] {
            let directory = TemporaryDirectory::new();
            let painters = draw(Painters::new(threads, Some(directory.path.clone())));
            assert_eq!(painters.finish().unwrap().count(), expected.len() as u64);
            for (name, octets) in &expected {
                let written = std::fs::read(directory.path.join(name)).unwrap();
                assert!(written == *octets, "{name} differs");
            }
            assert_eq!(
                std::fs::read_dir(&directory.path).unwrap().count(),
                expected.len()
            );
        }
    }

    #[test]
    fn what_cannot_be_written_is_told() {
        for threads in [1, 2] {
            let painters = draw(Painters::new(
                threads,
                Some("/nonexistent/directory".into()),
            ));
            let (path, error) = painters.finish().unwrap_err();
            assert!(path.starts_with("/nonexistent/directory"));
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
