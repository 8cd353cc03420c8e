//! Writes each file completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

/// Bytes written at a time.
const PIECE: usize = 1 << 18;

/// A file to be written. The content first goes to a temporary file beside it. An existing path that is not a regular
/// file, such as a pipe, is written directly.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    part: Option<PathBuf>,
    file: Option<File>,
    suffix: Option<String>,
}

impl Target {
    /// Checks that the file can be written, before a measurement starts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(path: &Path) -> Result<Target> {
        Self::try_open(path).with_context(|| cannot_write(path))
    }

    fn try_open(path: &Path) -> Result<Target> {
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let suffix = suffix.map(str::to_ascii_lowercase);
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(fs::Metadata::is_dir) {
            bail!("it is a directory");
        }
        if found.is_some_and(|found| !found.is_file()) {
            return Ok(Target {
                path: path.to_owned(),
                part: None,
                file: Some(OpenOptions::new().write(true).open(path)?),
                suffix,
            });
        }
        // Replace the target of a symbolic link, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = place.file_name().ok_or_else(|| anyhow!("it has no name"))?;
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(format!(".{}.part", std::process::id()));
        let part = place.with_file_name(part);
        Ok(Target {
            file: Some(File::create(&part)?),
            path: place,
            part: Some(part),
            suffix,
        })
    }

    /// Opens several output files.
    ///
    /// # Errors
    /// The first file that cannot be written, or that is named twice.
    pub fn open_all<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<Vec<Target>> {
        let mut targets: Vec<Target> = Vec::new();
        for path in paths {
            let target = Target::open(path)?;
            let same = |other: &Target| other.path == target.path && target.part.is_some();
            if targets.iter().any(same) {
                bail!("{} is to be written twice", path.display());
            }
            targets.push(target);
        }
        Ok(targets)
    }

    /// The file name's suffix in lower case: the part after the last dot.
    pub fn suffix(&self) -> Option<&str> {
        self.suffix.as_deref()
    }

    /// Calls `fill` to write the content, then moves the file into place.
    ///
    /// # Errors
    /// The error of `fill` or of the file system. A previous file is left unchanged.
    pub fn write<F>(mut self, fill: F) -> Result<()>
    where
        F: FnOnce(BufWriter<File>) -> io::Result<BufWriter<File>>,
    {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let written = fill(BufWriter::with_capacity(PIECE, file)).and_then(|mut file| {
            file.flush()?;
            match &self.part {
                Some(part) => {
                    file.get_ref().sync_all()?;
                    fs::rename(part, &self.path)
                }
                None => Ok(()),
            }
        });
        written.with_context(|| cannot_write(&self.path))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // The temporary file no longer exists once it was moved into place.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A directory for one test.
    pub(crate) struct Place(pub(crate) PathBuf);

    impl Place {
        pub(crate) fn new(name: &str) -> Place {
            let name = format!("headend-ping-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Place(path)
        }

        pub(crate) fn count(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(text: &str) -> impl FnOnce(BufWriter<File>) -> io::Result<BufWriter<File>> {
        move |mut file| file.write_all(text.as_bytes()).map(|()| file)
    }

    #[test]
    fn what_cannot_be_written_is_said_before_anything_is_measured() {
        let place = Place::new("refused");
        let error = Target::open(&place.0.join("no/where")).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert!(Target::open(&place.0).is_err());
        drop(Target::open(&place.0.join("unused")).unwrap());
        assert_eq!(place.count(), 0);
    }

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let place = Place::new("whole");
        let path = place.0.join("a");
        Target::open(&path).unwrap().write(text("one")).unwrap();
        let broken = Target::open(&path).unwrap();
        let full = |_| Err(io::ErrorKind::StorageFull.into());
        assert!(broken.write(full).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let link = place.0.join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        Target::open(&link).unwrap().write(text("two")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(place.count(), 2, "no part is left");
    }

    #[test]
    fn a_device_is_written_and_stays_what_it_is() {
        let error = Target::open(Path::new("/dev/full")).unwrap();
        let error = format!("{:#}", error.write(text("x")).unwrap_err());
        assert!(error.starts_with("cannot write /dev/full: "), "{error}");
        Target::open(Path::new("/dev/null"))
            .unwrap()
            .write(text("x"))
            .unwrap();
        for device in ["/dev/full", "/dev/null"] {
            assert!(!fs::metadata(device).unwrap().is_file(), "{device}");
        }
    }

    #[test]
    fn a_file_is_not_written_twice() {
        let place = Place::new("twice");
        let (one, other) = (place.0.join("a"), place.0.join("b"));
        assert!(Target::open_all([&*one, &*other]).is_ok());
        let error = Target::open_all([&*one, &*other, &*one]).unwrap_err();
        assert!(error.to_string().ends_with("a is to be written twice"));
        let null = Path::new("/dev/null");
        assert!(Target::open_all([null, null]).is_ok());
        assert_eq!(place.count(), 0);
    }
}
