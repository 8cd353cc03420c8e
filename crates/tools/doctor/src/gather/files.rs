//! Owner, mode and place of the files that a configuration names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::host::{FileFact, Mode, User};
use crate::wants::{FileUse, Wants};

/// The facts about one file, as `user` finds it.
pub(super) fn fact(path: &Path, used: FileUse, wants: &Wants, user: &User) -> FileFact {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = path
        .parent()
        .map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let space = statvfs(&directory)
        .ok()
        .map(|s| (s.f_bavail.saturating_mul(s.f_frsize), s.f_flag));
    FileFact {
        used,
        file: mode(&path),
        directory: mode(&directory),
        closed: closed(&directory, user),
        free_bytes: space.map(|(free, _)| free),
        is_read_only: space.is_some_and(|(_, flag)| flag.contains(StatVfsMountFlags::RDONLY)),
        has_secret: used == FileUse::Secret || used == FileUse::Configuration && wants.has_secret,
        path,
    }
}

fn mode(path: &Path) -> Option<Mode> {
    let meta = fs::metadata(path).ok()?;
    Some(Mode {
        bits: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        is_directory: meta.is_dir(),
    })
}

/// The first directory from the root on that `user` may not enter.
fn closed(directory: &Path, user: &User) -> Option<PathBuf> {
    let mut all: Vec<&Path> = directory.ancestors().collect();
    all.reverse();
    let closed = |path: &&Path| mode(path).is_some_and(|mode| !mode.allows(user, 1));
    all.into_iter().find(closed).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_facts_that_stat_gives() {
        let own = std::env::current_exe().unwrap();
        let fact = fact(&own, FileUse::Read, &Wants::default(), &User::default());
        assert!(
            fact.file
                .is_some_and(|file| !file.is_directory && file.bits & 0o100 != 0)
        );
        assert!(
            fact.directory
                .is_some_and(|directory| directory.is_directory)
        );
        assert!(fact.free_bytes.is_some());
        assert_eq!(fact.closed, None);
    }
}
