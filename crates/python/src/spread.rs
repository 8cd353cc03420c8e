//! Map and reduce over ranges of captures. `headend.spread` in Python divides the files and moves the bytes;
//! [`trace::spread`] has the rest.
//!
//! Side data and starts are JSON, because Python only passes them on.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trace::part::{Header, Merge, Writer};
use trace::spread::{self, Reducer, Side, Start};
use trace::{Captures, Options, Plan};

use crate::run::{CaptureError, Given, text};
use crate::source::{Input, Object};
use crate::table::{Found, Subject, Table, What};

fn plan(options: Options) -> Plan {
    let options = Options {
        seed: Some(0),
        ..options
    };
    Captures::from_reader("", std::io::empty(), options).plan()
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn sides(given: &[Vec<u8>]) -> PyResult<Vec<Side>> {
    let sides = given.iter().map(|side| serde_json::from_slice(side));
    sides.collect::<Result<_, _>>().map_err(wrong)
}

/// What the ranges of a file need before their first record, by the window that the file begins with. `None` if the file
/// cannot be divided.
#[pyfunction]
pub(crate) fn range_header<'py>(py: Python<'py>, window: &[u8]) -> Option<Bound<'py, PyBytes>> {
    spread::header(window).map(|header| PyBytes::new(py, &header))
}

/// Offset in `window` of the first record; `None` if there is none.
#[pyfunction]
pub(crate) fn next_record(header: &[u8], window: &[u8]) -> Option<usize> {
    spread::next_record(header, window)
}

/// Time of a capture's first packet, in nanoseconds since 1970; `None` if it has none or cannot be read.
#[pyfunction]
pub(crate) fn first_time(py: Python<'_>, source: Py<PyAny>) -> Option<i64> {
    let source = Object::new(source);
    py.detach(|| capfile::first_time(source)).ok().flatten()
}

/// A range's lots and side data.
#[derive(IntoPyObject)]
pub(crate) struct Mapped<'py> {
    lots: Vec<Bound<'py, PyBytes>>,
    side: Bound<'py, PyBytes>,
    /// Offset of the first record after it; `None` at the end of the file.
    end: Option<u64>,
    /// The header that the range after it needs, if that may differ from its own.
    header: Option<Bound<'py, PyBytes>>,
    is_fragmented: bool,
    /// The file cannot be divided.
    is_untimed: bool,
    faults: Vec<String>,
}

/// The bytes of a range after the file's header: of a path from an offset on, or of a file object.
fn stream(source: &Bound<'_, PyAny>, header: &[u8], from: u64) -> PyResult<Box<dyn Read + Send>> {
    let header = Cursor::new(header.to_vec());
    // Without Python in between, a range costs less.
    let Ok(path) = source.extract::<PathBuf>() else {
        let object = Object::new(source.clone().unbind());
        return Ok(Box::new(header.chain(object)));
    };
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    Ok(Box::new(header.chain(file)))
}

/// Reads a range and sorts its segments into a lot for each part.
///
/// `source` is a path, of which the bytes from `from` on are read, or a file object at that offset.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python passes each of them")]
pub(crate) fn map_stream<'py>(
    py: Python<'py>,
    name: &str,
    source: &Bound<'py, PyAny>,
    header: &[u8],
    from: u64,
    until: Option<u64>,
    parts: u32,
    why: bool,
    given: Given,
    start: Option<&[u8]>,
) -> PyResult<Mapped<'py>> {
    let plan = plan(given.options(why)?);
    let start: Option<Start> = (start.map(serde_json::from_slice).transpose()).map_err(wrong)?;
    let source = stream(source, header, from)?;
    let until = until.unwrap_or(u64::MAX);
    let mapped = py
        .detach(|| spread::map(name, source, until, plan, parts, start))
        .map_err(|error| CaptureError::new_err(format!("{name}: {error}")))?;
    let side = serde_json::to_vec(&mapped.side).map_err(wrong)?;
    let lots = mapped.lots.iter().map(|lot| PyBytes::new(py, lot));
    let end = Some(mapped.side.end).filter(|&end| end != u64::MAX);
    Ok(Mapped {
        lots: lots.collect(),
        side: PyBytes::new(py, &side),
        end,
        header: (mapped.header.as_ref()).map(|header| PyBytes::new(py, header)),
        is_fragmented: mapped.side.is_fragmented,
        is_untimed: mapped.is_untimed,
        faults: mapped.side.faults,
    })
}

/// The starts of all ranges; or the index of a range that must be mapped again, and its start.
type Starts = (Vec<Vec<u8>>, Option<(usize, Vec<u8>)>);

/// What each range needs from those before it. If a range must be mapped again, its index and its start instead.
#[pyfunction]
pub(crate) fn starts(given: Vec<Vec<u8>>) -> PyResult<Starts> {
    let text = |start: &Start| serde_json::to_vec(start).map_err(wrong);
    match spread::starts(&sides(&given)?) {
        Ok(starts) => Ok((starts.iter().map(text).collect::<PyResult<_>>()?, None)),
        Err((at, start)) => Ok((Vec::new(), Some((at, text(&start)?)))),
    }
}

/// Analyses the lots of a part: file, start and lot of each range, in order. Returns the part.
#[pyfunction]
pub(crate) fn reduce_lots<'py>(
    py: Python<'py>,
    part: (u32, u32),
    files: Vec<String>,
    given_sides: Vec<Vec<u8>>,
    lots: Vec<(u32, Vec<u8>, Py<PyBytes>)>,
    why: bool,
    given: Given,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan(given.options(why)?);
    let sides = sides(&given_sides)?;
    let mut reducer = Reducer::new(&plan);
    for (file, start, lot) in lots {
        let start: Start = serde_json::from_slice(&start).map_err(wrong)?;
        let lot = lot.as_bytes(py);
        py.detach(|| reducer.lot(file, &start, lot))
            .map_err(wrong)?;
    }
    let out = py
        .detach(|| reducer.finish(part, files, &sides, Vec::new()))
        .map_err(wrong)?;
    Ok(PyBytes::new(py, &out))
}

/// A part by reading everything, for captures that ranges do not suit.
#[pyfunction]
pub(crate) fn write_part<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyAny>,
    part: (u32, u32),
    why: bool,
    given: Given,
) -> PyResult<Bound<'py, PyBytes>> {
    let options = Options {
        part: Some(part),
        ..given.options(why)?
    };
    let inputs = Input::all(paths)?.into_iter().map(Input::into_reader);
    let captures = Captures::from_readers(inputs, options, Arc::new(()));
    let files = captures.files();
    let out = py.detach(|| -> Result<Vec<u8>, String> {
        let found = captures.read().map_err(|error| text(&error))?;
        let settings = vec![("ranges".to_owned(), "0".to_owned())];
        let header = Header::new(part.0, part.1, settings, files, found.summary().clone());
        let mut writer = Writer::new(Vec::new(), &header).map_err(|error| error.to_string())?;
        let mut room = Vec::new();
        for at in 0..found.len() {
            let octets = found.frozen(at, &mut room).map_err(|error| text(&error))?;
            writer
                .connection(found.first_packet(at), octets)
                .map_err(|error| error.to_string())?;
        }
        writer.finish().map_err(|error| error.to_string())
    });
    Ok(PyBytes::new(py, &out.map_err(CaptureError::new_err)?))
}

/// The parts of a run as one table.
#[pyfunction]
pub(crate) fn merge(
    paths: Vec<PathBuf>,
    why: bool,
    columns: Option<Vec<String>>,
) -> PyResult<Table> {
    let what = What::new(Subject::of(why), columns.as_deref())?;
    let merge = Merge::open(&paths).map_err(|error| CaptureError::new_err(error.to_string()))?;
    let (summary, files) = (merge.summary().clone(), merge.files().to_vec());
    Ok(Table::new(
        Found::Parts {
            paths,
            summary,
            files,
        },
        what,
    ))
}
