//! The results of an analysis, as an Arrow stream.
//!
//! The rows become Arrow arrays batch by batch, while the reader takes them: neither the stream nor the analysis holds
//! the whole table. The memory of a batch belongs to its reader, which therefore copies nothing.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use trace::columns::{self as all, SCHEMA, SUMMARY};
use trace::{Connection, Findings};

use crate::{causes, columns};

/// Connections in a batch: about 15 MB with all columns.
const BATCH: usize = 8192;

/// Which rows and columns the table has.
#[derive(Clone)]
pub(crate) struct What {
    why: bool,
    chosen: Arc<[usize]>,
    schema: SchemaRef,
}

impl What {
    /// The columns of those names, or all.
    ///
    /// # Errors
    /// There is no column of that name.
    pub(crate) fn new(why: bool, names: Option<&[String]>) -> PyResult<What> {
        let fields: Vec<Field> = match why {
            true => causes::fields(),
            false => all::ALL.iter().map(columns::field).collect(),
        };
        let chosen: Vec<usize> = match names {
            None => (0..fields.len()).collect(),
            Some(names) => (names.iter())
                .map(|name| find(&fields, name))
                .collect::<PyResult<_>>()?,
        };
        let about = match why {
            true => ("headend.schema".to_owned(), "why/1".to_owned()),
            false => ("headend.schema".to_owned(), SCHEMA.to_string()),
        };
        let fields: Vec<Field> = chosen.iter().map(|&at| fields[at].clone()).collect();
        let schema = Schema::new_with_metadata(fields, HashMap::from([about]));
        Ok(What {
            why,
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
            true => "docs/trace-columns.md lists all columns".to_owned(),
            false => format!("similar: {}", like.join(", ")),
        };
        PyValueError::new_err(format!("columns: there is no column {name:?}; {hint}"))
    })
}

/// Connections, or the causes of their directions, as an Arrow stream.
#[pyclass(frozen, module = "headend")]
pub(crate) struct Table {
    findings: Arc<Findings>,
    what: What,
}

impl Table {
    pub(crate) fn new(findings: Findings, what: What) -> Table {
        Table {
            findings: Arc::new(findings),
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
        let batches = Batches {
            findings: Arc::clone(&self.findings),
            what: self.what.clone(),
            next: 0,
            room: Vec::new(),
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

    /// Number of connections found.
    #[getter]
    fn connections(&self) -> usize {
        self.findings.len()
    }

    /// Counts of packets and connections, as in the summary of `headend trace --json`.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        let summary = self.findings.summary();
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
        let files = self.findings.files().iter();
        files.map(|file| file.name.clone()).collect()
    }

    /// What is wrong with the files; empty if nothing is.
    #[getter]
    fn faults(&self) -> Vec<String> {
        let files = self.findings.files().iter();
        files.flat_map(|file| file.lines()).collect()
    }

    fn __repr__(&self) -> String {
        let kind = if self.what.why { "why" } else { "trace" };
        format!(
            "<headend.Table of {kind}: {} connections, {} columns>",
            self.findings.len(),
            self.what.chosen.len()
        )
    }
}

/// The rows, batch by batch.
struct Batches {
    findings: Arc<Findings>,
    what: What,
    /// Index of the next connection.
    next: usize,
    room: Vec<u8>,
}

impl Batches {
    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let chosen = Arc::clone(&self.what.chosen);
        let count = BATCH.min(self.findings.len() - self.next);
        let mut values = match self.what.why {
            true => causes::empty(&chosen, 2 * count),
            false => columns::empty(&chosen, count),
        };
        let end = self.findings.summary().end();
        let mut rows = 0;
        for at in self.next..self.next + count {
            let connection = self.connection(at)?;
            rows += match self.what.why {
                true => causes::push(&chosen, &connection, &mut values),
                false => {
                    columns::push(&chosen, &all::rows(&connection, end), &mut values);
                    1
                }
            };
        }
        self.next += count;
        let arrays = values.iter_mut().map(crate::rows::Values::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.what.schema), arrays, &options)
    }

    fn connection(&mut self, at: usize) -> Result<Connection, ArrowError> {
        let external = |error: trace::Error| ArrowError::ExternalError(Box::new(error));
        let octets = self.findings.frozen(at, &mut self.room).map_err(external)?;
        let mut connection = Connection::default();
        connection
            .thaw(octets)
            .map_err(|error| external(error.into()))?;
        connection.number = at as u64 + 1;
        Ok(connection)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.findings.len() {
            return None;
        }
        let batch = self.batch();
        if batch.is_err() {
            self.next = self.findings.len();
        }
        Some(batch)
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.what.schema)
    }
}
