//! The file with the token.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::parse;

/// The longest file read.
const FILE_MAX: u64 = 4096;

/// Reads the token: the file's only line.
///
/// # Errors
/// The file cannot be read, others can read it too, or its text is no token. The message never has the text.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let place = path.display();
    let file = File::open(path).with_context(|| {
        format!("{place}: cannot read the token; make one with: (umask 077; head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \\n' > {place})")
    })?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!("{place}: mode {mode:04o} lets others read the token; use: chmod 600 {place}");
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{place}: cannot read the token"))?;
    let Some(token) = parse::token(&bytes) else {
        bail!(
            "{place}: a token is one line of at least {} ASCII characters without spaces",
            parse::TOKEN_MIN
        );
    };
    Ok(token.to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::Directory;

    #[test]
    fn a_token_is_long_and_for_its_owner_alone() {
        let directory = Directory::new("token");
        let path = directory.0.join("token");
        let read = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read(&path).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(
            read("0123456789abcdef\n", 0o600).unwrap(),
            b"0123456789abcdef"
        );
        assert!(read("0123456789abcdef", 0o400).is_ok());
        for mode in [0o640, 0o604, 0o644] {
            let error = read("0123456789abcdef", mode).unwrap_err();
            assert!(error.contains("chmod 600"), "{error}");
        }
        for text in [
            "",
            "short",
            "0123456789 abcdef",
            "0123456789abcdef\nmore",
            "0123456789abcd\u{e9}f",
        ] {
            let error = read(text, 0o600).unwrap_err();
            assert!(error.contains("at least 16"), "{text:?}: {error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(
            super::read(&path)
                .unwrap_err()
                .to_string()
                .contains("umask 077")
        );
    }
}
