//! The capture analyser for Python.
//!
//! | module | what it does |
//! |---|---|
//! | `run` | analyses captures on a thread of its own, while Python sees progress and signals |
//! | `source` | paths and file objects as inputs |
//! | `table` | the results, as an Arrow stream |
//! | `columns` | the columns of `trace` as Arrow arrays |
//! | `causes` | the columns of `why` as Arrow arrays |
//! | `flows` | UDP flows, and the columns of `why_udp` as Arrow arrays |
//! | `rows` | arrays that grow by a value |
//! | `spread` | map and reduce over ranges of captures, for several machines |
//!
//! The Python package around this module is in `python/headend`. Start reading at [`_headend`].
#![forbid(unsafe_code)]

mod causes;
mod columns;
mod flows;
mod rows;
mod run;
mod source;
mod spread;
mod table;

/// The compiled part of the Python package `headend`.
#[pyo3::pymodule]
mod _headend {
    #[pymodule_export]
    use super::run::{CaptureError, CaptureWarning, analyse, explain};
    #[pymodule_export]
    use super::spread::{
        first_time, map_stream, merge, next_record, range_header, reduce_lots, starts, write_part,
    };
    #[pymodule_export]
    use super::table::Table;
}
