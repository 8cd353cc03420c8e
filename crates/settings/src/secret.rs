//! Secrets: from the file itself or from a file that only its owner and group may read. This module does I/O.
//!
//! No fault repeats a secret.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base::Redacted;

use crate::file::beside;
use crate::section::{At, Section};

/// Bytes of the longest secret.
const LONGEST: usize = 4096;

/// The section's `secret`, or the content of its `secret_file`, if one is given. A relative file name is relative to
/// the folder of the configuration file.
pub fn optional(section: &mut Section, config: &Path) -> Option<At<Redacted<Vec<u8>>>> {
    read(section, config, None)
}

/// The same for a section that needs a secret. `what` names the secret in faults.
pub fn required(section: &mut Section, config: &Path, what: &str) -> Option<Redacted<Vec<u8>>> {
    if !section.has("secret") && !section.has("secret_file") {
        section.require("secret_file", &format!("give the file that holds {what}"));
    }
    read(section, config, Some(what)).map(|secret| secret.value)
}

fn read(section: &mut Section, config: &Path, what: Option<&str>) -> Option<At<Redacted<Vec<u8>>>> {
    let plain = section.string("secret");
    let file = section.string("secret_file");
    if let (Some(_), Some(file)) = (&plain, &file) {
        section.fault(
            file.at,
            "secret_file",
            "is given beside secret; give one of the two",
        );
        return None;
    }
    if let Some(plain) = plain {
        if plain.value.is_empty() || plain.value.len() > LONGEST {
            let message = match what {
                None => format!("must have 1 to {LONGEST} bytes; leave it out for no secret"),
                Some(what) => format!("must have 1 to {LONGEST} bytes; give {what}"),
            };
            section.fault(plain.at, "secret", message);
            return None;
        }
        let value = Redacted::new(plain.value.into_bytes());
        section.secret(&value);
        return Some(At {
            value,
            at: plain.at,
        });
    }
    let file = file?;
    let path = beside(config, &file.value);
    match from_file(&path) {
        Ok(value) => {
            section.secret(&value);
            Some(At { value, at: file.at })
        }
        Err(message) => {
            section.fault(
                file.at,
                "secret_file",
                format!("{}: {message}", path.display()),
            );
            None
        }
    }
}

/// The text of a file that others may not use, of at most `longest` bytes.
///
/// # Errors
/// What is wrong with the file, and what would be right.
pub fn private_text(path: &Path, longest: u64) -> Result<Redacted<String>, String> {
    let mut text = String::new();
    private(path)?
        .take(longest + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if text.len() as u64 > longest {
        return Err(format!("is longer than {} MiB", longest >> 20));
    }
    Ok(Redacted::new(text))
}

/// Opens a file that others may not use.
fn private(path: &Path) -> Result<std::fs::File, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err("is not a regular file; it must be a file that holds the secret".into());
    }
    if meta.mode() & 0o007 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(format!(
            "others may use it (mode {mode:04o}); chmod it to 0600 or 0640"
        ));
    }
    std::fs::File::open(path).map_err(unreadable)
}

fn from_file(path: &Path) -> Result<Redacted<Vec<u8>>, String> {
    let mut secret = Vec::new();
    private(path)?
        .take(LONGEST as u64 + 2)
        .read_to_end(&mut secret)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if secret.last() == Some(&b'\n') {
        secret.pop();
    }
    match secret.len() {
        1..=LONGEST => Ok(Redacted::new(secret)),
        0 => Err("is empty; it must hold the secret on one line".into()),
        _ => Err(format!(
            "holds more than {LONGEST} bytes; that is no secret"
        )),
    }
}
