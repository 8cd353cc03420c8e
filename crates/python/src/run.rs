//! Runs an analysis on a thread of its own. Meanwhile the calling thread holds no lock of Python. It wakes up every
//! 20 ms to report progress and to let Python handle signals.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trace::capture::{Event, Stop};
use trace::{Captures, Error, Findings, Options};

use crate::flows::Explain;
use crate::source::Input;
use crate::table::{Found, Subject, Table, What};

pyo3::create_exception!(
    headend,
    CaptureError,
    PyOSError,
    "No capture can be read, or, with strict=True, one of them is faulty."
);
pyo3::create_exception!(
    headend,
    CaptureWarning,
    PyUserWarning,
    "A capture is faulty. The table covers its readable packets."
);

/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two looks at the flag while a pipe is silent, in nanoseconds.
const SILENCE_NS: i64 = 20_000_000;

/// A flag that ends the reading.
struct Flag(AtomicBool);

impl Stop for Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&self, source: &File) -> io::Result<bool> {
        let silence = Timespec {
            tv_sec: 0,
            tv_nsec: SILENCE_NS,
        };
        while !self.is_set() {
            match poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&silence)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

/// Bytes read so far: of files that are complete, and of the present one.
#[derive(Default)]
struct Bytes {
    before: AtomicU64,
    now: AtomicU64,
}

/// Options by their Python names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    pub(crate) columns: Option<Vec<String>>,
    memory: u64,
    idle: f64,
    idle_closed: f64,
    realm: bool,
    checksum: bool,
    threads: Option<usize>,
    first_packet: u64,
    last_packet: Option<u64>,
    strict: bool,
}

impl Given {
    pub(crate) fn options(&self, why: bool) -> PyResult<Options> {
        let seconds = |name: &str, value: f64| match value {
            value if value > 0.0 && value <= 1e9 => Ok((value * 1e9) as i64),
            value => Err(PyValueError::new_err(format!(
                "{name}: {value} s is out of range; give more than 0 and at most 1e9 seconds"
            ))),
        };
        if self.threads == Some(0) {
            return Err(PyValueError::new_err(
                "threads: 0 is out of range; give 1 or more",
            ));
        }
        if self.first_packet == 0 {
            return Err(PyValueError::new_err(
                "first_packet: 0 is out of range; packets are numbered from 1",
            ));
        }
        Ok(Options {
            memory: self.memory,
            idle_ns: seconds("idle", self.idle)?,
            idle_closed_ns: seconds("idle_closed", self.idle_closed)?,
            tunnels_apart: self.realm,
            checksums: self.checksum,
            threads: self.threads,
            first_packet: self.first_packet,
            last_packet: self.last_packet.unwrap_or(u64::MAX),
            why,
            ..Options::default()
        })
    }
}

/// Analyses captures. `headend.trace` and `headend.why` call it.
#[pyfunction]
pub(crate) fn analyse(
    py: Python<'_>,
    paths: &Bound<'_, PyAny>,
    why: bool,
    progress: Option<Py<PyAny>>,
    given: Given,
) -> PyResult<Table> {
    let what = What::new(Subject::of(why), given.columns.as_deref())?;
    let findings = read(py, paths, why, progress, &given, Captures::read)?;
    complain(py, &findings, given.strict)?;
    Ok(Table::new(Found::Whole(findings), what))
}

/// Explains UDP flows. `headend.why_udp` calls it.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    paths: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
    given: Given,
) -> PyResult<Table> {
    let what = What::new(Subject::Flow, given.columns.as_deref())?;
    let explain = |captures: Captures| {
        let watch = Explain::new(captures.plan().seed());
        captures.read_with(watch)
    };
    let (findings, explained) = read(py, paths, false, progress, &given, explain)?;
    complain(py, &findings, given.strict)?;
    let summary = explained.summary(findings.summary());
    let found = Found::Flows {
        findings: Box::new(findings),
        flows: explained.into_flows(),
        summary,
    };
    Ok(Table::new(found, what))
}

/// Opens captures and reads them by `work` on a thread of its own.
fn read<T: Send + 'static>(
    py: Python<'_>,
    paths: &Bound<'_, PyAny>,
    why: bool,
    progress: Option<Py<PyAny>>,
    given: &Given,
    work: impl FnOnce(Captures) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(Flag(AtomicBool::new(false)));
    let mut captures = open(Input::all(paths)?, given.options(why)?, &stop);
    let total = captures.size();
    let bytes = Arc::new(Bytes::default());
    let counted = Arc::clone(&bytes);
    captures.on_event(move |event| match event {
        Event::Read(octets) => counted.now.store(octets, Ordering::Relaxed),
        Event::Closed(file) => {
            let size = file
                .size
                .unwrap_or_else(|| counted.now.load(Ordering::Relaxed));
            counted.before.fetch_add(size, Ordering::Relaxed);
            counted.now.store(0, Ordering::Relaxed);
        }
        _ => {}
    });
    let report = |py: Python<'_>| -> PyResult<()> {
        let octets = bytes.before.load(Ordering::Relaxed) + bytes.now.load(Ordering::Relaxed);
        match &progress {
            Some(progress) => progress.call1(py, (octets, total)).map(drop),
            None => Ok(()),
        }
    };
    let found = watch(py, move || work(captures), &stop, report)?;
    report(py)?;
    found.map_err(|error| CaptureError::new_err(text(&error)))
}

fn open(inputs: Vec<Input>, options: Options, stop: &Arc<Flag>) -> Captures {
    let stop = Arc::<Flag>::clone(stop);
    let paths: Option<Vec<_>> = (inputs.iter())
        .map(|input| match input {
            Input::Path(path) => Some(path.clone()),
            Input::Object(..) => None,
        })
        .collect();
    if let Some(paths) = paths {
        return Captures::open_until(paths, options, stop);
    }
    let readers = inputs.into_iter().map(Input::into_reader);
    Captures::from_readers(readers, options, stop)
}

/// Does the work on another thread, and lets Python run meanwhile.
///
/// # Errors
/// A signal handler or the progress function raised an exception. The reading has then ended.
fn watch<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: &Flag,
    mut report: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let (send, mut receive) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        // The receiver waits until this is sent.
        let _ = send.send(work());
    });
    let mut raised = None;
    let found = loop {
        let waited;
        (waited, receive) = py.detach(move || (receive.recv_timeout(LOOK), receive));
        match waited {
            Ok(found) => break Some(found),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals().and_then(|()| report(py)) {
                    stop.0.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
        }
    };
    let ended = py.detach(|| worker.join());
    match (raised, found, ended) {
        (Some(error), _, _) => Err(error),
        (None, Some(found), Ok(())) => Ok(found),
        (None, _, Err(panic)) => std::panic::resume_unwind(panic),
        (None, None, Ok(())) => unreachable!("the thread sends its result before it ends"),
    }
}

/// The text of an error with its cause, as the command prints it.
pub(crate) fn text(error: &Error) -> String {
    match error {
        Error::NothingRead {
            file,
            source: Some(source),
        } => format!("{file}: {source}"),
        error => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// Warns of faulty files, or raises an exception if `strict`.
fn complain(py: Python<'_>, findings: &Findings, strict: bool) -> PyResult<()> {
    let lines: Vec<String> = findings
        .files()
        .iter()
        .flat_map(|file| file.lines())
        .collect();
    if strict && !lines.is_empty() {
        return Err(CaptureError::new_err(lines.join("\n")));
    }
    let warnings = py.import("warnings")?;
    for line in lines {
        // The level of the line that called headend.trace.
        warnings.call_method1("warn", (line, py.get_type::<CaptureWarning>(), 3))?;
    }
    Ok(())
}
