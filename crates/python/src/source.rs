//! Paths and file objects as inputs of the analysis.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// An input as Python gives it.
pub(crate) enum Input {
    Path(PathBuf),
    Object(String, Object),
}

/// A binary file object, such as one of fsspec.
pub(crate) struct Object(Py<PyAny>);

impl Input {
    /// Understands one input.
    ///
    /// # Errors
    /// It is neither a path nor a file object.
    pub(crate) fn new(given: &Bound<'_, PyAny>) -> PyResult<Input> {
        if given.hasattr("read")? {
            let name = given.getattr("name").ok();
            let name = name.and_then(|name| name.extract::<String>().ok());
            let name = name.unwrap_or_else(|| "file object".to_owned());
            return Ok(Input::Object(name, Object(given.clone().unbind())));
        }
        match given.extract::<PathBuf>() {
            Ok(path) => Ok(Input::Path(path)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "paths: {} is no path and has no method read(); give a str, an os.PathLike or a binary file",
                given.get_type().name()?
            ))),
        }
    }

    /// Its name, and a reader of it. If it cannot be opened, the reader's error says why.
    pub(crate) fn into_reader(self) -> (String, Box<dyn Read + Send>) {
        match self {
            Input::Object(name, object) => (name, Box::new(object)),
            Input::Path(path) => {
                let name = path.display().to_string();
                match File::open(path) {
                    Ok(file) => (name, Box::new(file)),
                    Err(error) => (name, Box::new(Unreadable(Some(error)))),
                }
            }
        }
    }

    /// Understands one input, or an iterable of them.
    ///
    /// # Errors
    /// There is none, or one of them is neither a path nor a file object.
    pub(crate) fn all(given: &Bound<'_, PyAny>) -> PyResult<Vec<Input>> {
        let single = given.is_instance_of::<PyString>()
            || given.is_instance_of::<PyBytes>()
            || given.hasattr("__fspath__")?
            || given.hasattr("read")?;
        if single {
            return Ok(vec![Input::new(given)?]);
        }
        let Ok(inputs) = given.try_iter() else {
            return Input::new(given).map(|input| vec![input]);
        };
        let inputs = inputs.map(|one| Input::new(&one?));
        let inputs: Vec<Input> = inputs.collect::<PyResult<_>>()?;
        if inputs.is_empty() {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "paths: no capture is named; give at least one",
            ));
        }
        Ok(inputs)
    }
}

impl Object {
    pub(crate) fn new(object: Py<PyAny>) -> Object {
        Object(object)
    }
}

impl Read for Object {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let mut read = || -> PyResult<usize> {
                let octets = self.0.bind(py).call_method1("read", (out.len(),))?;
                let octets = octets.cast_into::<PyBytes>()?;
                let octets = octets.as_bytes();
                let count = octets.len().min(out.len());
                out[..count].copy_from_slice(&octets[..count]);
                Ok(count)
            };
            read().map_err(|error| io::Error::other(error.to_string()))
        })
    }
}

/// A file among file objects that cannot be opened: the analysis reports it as it reports all others.
struct Unreadable(Option<io::Error>);

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Ok(0),
        }
    }
}
