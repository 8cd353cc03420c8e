//! A system without files.

use std::fs::{File, FileType};
use std::io;

pub(in super::super) fn is_pipe(_: FileType) -> bool {
    false
}

pub(in super::super) fn standard_input() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in super::super) fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in super::super) fn write_all_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in super::super) fn unnamed_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
