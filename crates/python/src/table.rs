//! The results of an analysis, as an Arrow stream.
//!
//! The rows become Arrow arrays batch by batch, while the reader takes them: neither the stream nor the analysis holds
//! the whole table. The memory of a batch belongs to its reader, which therefore copies nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use trace::columns::{self as all, SCHEMA, SUMMARY, Summary};
use trace::part::{Item, Merge};
use trace::udp::Flow;
use trace::{Connection, Findings};

use crate::rows::Values;
use crate::run::CaptureError;
use crate::{causes, columns, flows};

/// Connections in a batch: about 15 MB with all columns.
const BATCH: usize = 8192;

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A connection.
    Connection,
    /// A direction of a connection, whose time is divided into causes.
    Causes,
    /// A UDP flow.
    Flow,
}

impl Subject {
    /// Connections, or why they are slow.
    pub(crate) const fn of(why: bool) -> Subject {
        match why {
            true => Subject::Causes,
            false => Subject::Connection,
        }
    }

    fn fields(self) -> Vec<Field> {
        match self {
            Subject::Connection => all::ALL.iter().map(columns::field).collect(),
            Subject::Causes => causes::fields(),
            Subject::Flow => flows::fields(),
        }
    }

    /// The version of the columns.
    fn schema(self) -> String {
        match self {
            Subject::Connection => SCHEMA.to_string(),
            Subject::Causes => trace::why::columns::SCHEMA.to_owned(),
            Subject::Flow => trace::udp::columns::SCHEMA.to_owned(),
        }
    }

    /// The columns of those indexes, empty.
    fn empty(self, chosen: &[usize]) -> Vec<Values> {
        match self {
            Subject::Connection => columns::empty(chosen, BATCH),
            Subject::Causes => causes::empty(chosen, BATCH),
            Subject::Flow => flows::empty(chosen, BATCH),
        }
    }
}

/// Which rows and columns the table has.
#[derive(Clone)]
pub(crate) struct What {
    subject: Subject,
    chosen: Arc<[usize]>,
    schema: SchemaRef,
}

impl What {
    /// The columns of those names, or all.
    ///
    /// # Errors
    /// There is no column of that name.
    pub(crate) fn new(subject: Subject, names: Option<&[String]>) -> PyResult<What> {
        let fields = subject.fields();
        let chosen: Vec<usize> = match names {
            None => (0..fields.len()).collect(),
            Some(names) => (names.iter())
                .map(|name| find(&fields, name))
                .collect::<PyResult<_>>()?,
        };
        let about = ("headend.schema".to_owned(), subject.schema());
        let fields: Vec<Field> = chosen.iter().map(|&at| fields[at].clone()).collect();
        let schema = Schema::new_with_metadata(fields, HashMap::from([about]));
        Ok(What {
            subject,
            chosen: chosen.into(),
            schema: Arc::new(schema),
        })
    }
}

fn find(fields: &[Field], name: &str) -> PyResult<usize> {
    let found = fields.iter().position(|field| field.name() == name);
    found.ok_or_else(|| {
        let like = fields.iter().map(|field| field.name());
        let like: Vec<&str> = like
            .filter(|other| other.contains(name) || name.contains(other.as_str()))
            .map(String::as_str)
            .take(5)
            .collect();
        let hint = match like.is_empty() {
            true => "column_names of a table lists all columns".to_owned(),
            false => format!("similar: {}", like.join(", ")),
        };
        PyValueError::new_err(format!("columns: there is no column {name:?}; {hint}"))
    })
}

/// The results of one run, or of the parts of one.
pub(crate) enum Found {
    Whole(Findings),
    /// UDP flows, and the counts with theirs.
    Flows {
        findings: Box<Findings>,
        flows: Vec<Flow>,
        summary: Summary,
    },
    /// Each stream reads the part files anew.
    Parts {
        paths: Vec<PathBuf>,
        summary: Summary,
        files: Vec<String>,
    },
}

impl Found {
    fn summary(&self) -> &Summary {
        match self {
            Found::Whole(findings) => findings.summary(),
            Found::Flows { summary, .. } | Found::Parts { summary, .. } => summary,
        }
    }

    /// The findings of a run, if there are no parts.
    fn findings(&self) -> Option<&Findings> {
        match self {
            Found::Whole(findings) => Some(findings),
            Found::Flows { findings, .. } => Some(findings),
            Found::Parts { .. } => None,
        }
    }
}

/// Connections, the causes of their directions, or UDP flows, as an Arrow stream.
#[pyclass(frozen, module = "headend")]
pub(crate) struct Table {
    found: Arc<Found>,
    what: What,
}

impl Table {
    pub(crate) fn new(found: Found, what: What) -> Table {
        Table {
            found: Arc::new(found),
            what,
        }
    }
}

#[pymethods]
impl Table {
    /// The rows as a capsule of the Arrow PyCapsule interface. Each call starts a new stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to return its own schema.
        drop(requested_schema);
        let rows = match &*self.found {
            Found::Whole(_) => Rows::Whole(Arc::clone(&self.found), 0, Vec::new()),
            Found::Flows { .. } => Rows::Flows(Arc::clone(&self.found), 0),
            Found::Parts { paths, .. } => {
                let merge = Merge::open(paths);
                Rows::Parts(Box::new(
                    merge.map_err(|error| CaptureError::new_err(error.to_string()))?,
                ))
            }
        };
        let batches = Batches {
            rows,
            end: self.found.summary().end(),
            what: self.what.clone(),
            is_over: false,
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema as a capsule of the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.what.schema.as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.what.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// Number of TCP connections found.
    #[getter]
    fn connections(&self) -> u64 {
        self.found.summary().connections
    }

    /// Number of UDP flows found, if they were analysed.
    #[getter]
    fn flows(&self) -> u64 {
        self.found.summary().flows
    }

    /// Counts of packets and connections, as in the summary of `headend trace --json`.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        let summary = self.found.summary();
        for count in SUMMARY {
            counts.set_item(count.name, (count.get)(summary))?;
        }
        let seen = PyDict::new(py);
        for (name, count) in &summary.seen {
            seen.set_item(name, count)?;
        }
        counts.set_item("seen", seen)?;
        Ok(counts)
    }

    /// Names of the files, in the order they were read.
    #[getter]
    fn files(&self) -> Vec<String> {
        if let Found::Parts { files, .. } = &*self.found {
            return files.clone();
        }
        let findings = self.found.findings();
        let files = findings.into_iter().flat_map(Findings::files);
        files.map(|file| file.name.clone()).collect()
    }

    /// What is wrong with the files; empty if nothing is. Part files do not contain it.
    #[getter]
    fn faults(&self) -> Vec<String> {
        let findings = self.found.findings();
        let files = findings.into_iter().flat_map(Findings::files);
        files.flat_map(|file| file.lines()).collect()
    }

    fn __repr__(&self) -> String {
        let summary = self.found.summary();
        let (kind, rows) = match self.what.subject {
            Subject::Connection => ("trace", format!("{} connections", summary.connections)),
            Subject::Causes => ("why", format!("{} connections", summary.connections)),
            Subject::Flow => ("why_udp", format!("{} flows", summary.flows)),
        };
        let columns = self.what.chosen.len();
        format!("<headend.Table of {kind}: {rows}, {columns} columns>")
    }
}

/// What a row is made from.
enum One<'a> {
    Connection(&'a Connection),
    Flow(&'a Flow),
}

/// Where the rows come from.
enum Rows {
    /// The results, the index of the next connection, and room for one.
    Whole(Arc<Found>, usize, Vec<u8>),
    /// The results, and the index of the next flow.
    Flows(Arc<Found>, usize),
    Parts(Box<Merge>),
}

impl Rows {
    /// Passes up to `most` connections or flows on; returns how many.
    fn take(&mut self, most: usize, mut with: impl FnMut(One<'_>)) -> Result<usize, ArrowError> {
        for taken in 0..most {
            match self {
                Rows::Whole(found, next, room) => {
                    let Found::Whole(findings) = &**found else {
                        return Ok(taken);
                    };
                    if *next >= findings.len() {
                        return Ok(taken);
                    }
                    let octets = findings.frozen(*next, room).map_err(external)?;
                    let mut connection = Connection::default();
                    connection.thaw(octets).map_err(external)?;
                    *next += 1;
                    connection.number = *next as u64;
                    with(One::Connection(&connection));
                }
                Rows::Flows(found, next) => {
                    let Found::Flows { flows, .. } = &**found else {
                        return Ok(taken);
                    };
                    let Some(flow) = flows.get(*next) else {
                        return Ok(taken);
                    };
                    *next += 1;
                    with(One::Flow(flow));
                }
                Rows::Parts(merge) => match merge.next().map_err(external)? {
                    Some(Item::Connection(connection, _)) => with(One::Connection(connection)),
                    Some(Item::Flow(..)) => {}
                    None => return Ok(taken),
                },
            }
        }
        Ok(most)
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// The rows, batch by batch.
struct Batches {
    rows: Rows,
    /// Time of the capture's last packet.
    end: i64,
    what: What,
    is_over: bool,
}

impl Batches {
    /// The next batch; `None` after the last.
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let chosen = Arc::clone(&self.what.chosen);
        let (subject, end) = (self.what.subject, self.end);
        let mut values = subject.empty(&chosen);
        let mut rows = 0;
        let taken = self.rows.take(BATCH, |one| {
            rows += match (one, subject) {
                (One::Flow(flow), _) => flows::push(&chosen, flow, &mut values),
                (One::Connection(connection), Subject::Causes) => {
                    causes::push(&chosen, connection, &mut values)
                }
                (One::Connection(connection), _) => {
                    columns::push(&chosen, &all::rows(connection, end), &mut values);
                    1
                }
            };
        })?;
        self.is_over = taken < BATCH;
        if taken == 0 {
            return Ok(None);
        }
        let arrays = values.iter_mut().map(Values::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.what.schema);
        RecordBatch::try_new_with_options(schema, arrays, &options).map(Some)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let batch = self.batch();
        self.is_over |= batch.is_err();
        batch.transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.what.schema)
    }
}
