//! Reads files into texts. Only this module and `secret` do I/O.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::fault::{Faults, Notes};

/// Longest file that is read, in MiB.
const FILE_MIB_MAX: u64 = 64;

/// The text of a file.
///
/// # Errors
/// The file cannot be read, is too long, or is not UTF-8; the fault then has the place of the first wrong byte.
pub fn text_of(path: &Path) -> Result<String, Faults> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take((FILE_MIB_MAX << 20) + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let message = format!("cannot be read: {error}");
        return Err(Faults::whole(path, "", (message, "")));
    }
    if bytes.len() as u64 > FILE_MIB_MAX << 20 {
        let message = format!("is longer than {FILE_MIB_MAX} MiB");
        return Err(Faults::whole(path, "", (message, "")));
    }
    utf8(path, &bytes).map(str::to_owned)
}

/// `bytes` as text, which are those of the file at `path`.
///
/// # Errors
/// The place of the first byte that is not UTF-8.
pub fn utf8<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, Faults> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let notes = Notes::new(&valid);
        notes.at(valid.len(), "", "is not UTF-8 text from here on");
        notes.faults().of(path)
    })
}

/// The path of a file that the file at `config` names: a relative name is relative to the folder of `config`.
pub fn beside(config: &Path, name: &str) -> PathBuf {
    config.parent().unwrap_or(Path::new(".")).join(name)
}

/// The texts of `/etc/protocols` and `/etc/services`, empty where a file is missing.
pub fn network_names() -> [String; 2] {
    ["/etc/protocols", "/etc/services"].map(|path| text_of(Path::new(path)).unwrap_or_default())
}
