//! What this kernel can do, remembered in the state directory: trying takes a network namespace and a dozen queues.
//!
//! The answer is good for this boot, kernel release, privileges, loaded modules and installed modules. A file that others
//! could have written is not read. Whether the kernel tracks connections is looked at every time: it depends on the
//! network namespace.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tc::Abilities;

use super::kernel;

const SCHEMA: &str = "qos.apply.abilities/1";
const FILE: &str = "abilities";
/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    schema: String,
    conditions: Conditions,
    abilities: Abilities,
}

/// What an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Conditions {
    boot: String,
    release: String,
    /// Effective capabilities.
    privileges: String,
    /// Names of loaded modules, sorted.
    loaded: Vec<String>,
    /// Time of the list of modules that can be loaded, in nanoseconds.
    installed_ns: Option<i64>,
}

impl Conditions {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease").trim().to_owned();
        let status = read("/proc/thread-self/status");
        let privileges = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let modules = read("/proc/modules");
        let names = modules
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let mut loaded: Vec<String> = names.map(str::to_owned).collect();
        loaded.sort_unstable();
        let list = fs::metadata(format!("/lib/modules/{release}/modules.dep"));
        let time = |list: fs::Metadata| list.mtime() * 1_000_000_000 + list.mtime_nsec();
        Self {
            boot: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            release,
            privileges: privileges.unwrap_or_default().trim().to_owned(),
            loaded,
            installed_ns: list.ok().map(time),
        }
    }
}

/// What the kernel can do, remembered or tried. Remembers what it tried if `directory` exists: then a policy was applied
/// before.
///
/// # Errors
/// A privilege is missing.
pub(super) fn abilities(directory: &Path, is_dry: bool) -> Result<Abilities> {
    let path = directory.join(FILE);
    if let Some(abilities) = read(&path, &Conditions::now()) {
        return Ok(Abilities {
            conntrack: kernel::tracks_connections(),
            ..abilities
        });
    }
    let abilities = kernel::abilities()?;
    if !is_dry {
        // Trying loads modules, so the conditions are those afterwards. Without the file, the next call tries again.
        let _ = write(&path, abilities, Conditions::now());
    }
    Ok(abilities)
}

fn read(path: &Path, now: &Conditions) -> Option<Abilities> {
    let found = fs::symlink_metadata(path).ok()?;
    let is_own = found.is_file()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o077 == 0
        && found.len() <= BYTES_MAX;
    let text = is_own.then(|| fs::read(path).ok()).flatten()?;
    let found: Remembered = serde_json::from_slice(&text).ok()?;
    let is_good = found.schema == SCHEMA && found.conditions == *now;
    is_good.then_some(found.abilities)
}

/// Writes the whole file or none.
fn write(path: &Path, abilities: Abilities, conditions: Conditions) -> Result<()> {
    let remembered = Remembered {
        schema: SCHEMA.to_owned(),
        conditions,
        abilities,
    };
    let new = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let done = file
        .write_all(&serde_json::to_vec(&remembered)?)
        .and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    Ok(done?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("headend-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn an_answer_is_remembered_until_its_conditions_change() {
        let directory = scratch("remembered");
        let path = directory.join(FILE);
        let conditions = Conditions::now();
        assert_eq!(read(&path, &conditions), None);
        let abilities = Abilities {
            htb: true,
            ..Abilities::default()
        };
        write(&path, abilities, conditions.clone()).expect("written");
        assert_eq!(read(&path, &conditions), Some(abilities));
        let others = [
            Conditions {
                boot: "another".to_owned(),
                ..conditions.clone()
            },
            Conditions {
                release: "7.0".to_owned(),
                ..conditions.clone()
            },
            Conditions {
                privileges: "0".to_owned(),
                ..conditions.clone()
            },
            Conditions {
                loaded: vec!["sch_cake".to_owned()],
                ..conditions.clone()
            },
            Conditions {
                installed_ns: Some(1),
                ..conditions.clone()
            },
        ];
        for other in others {
            assert_eq!(read(&path, &other), None, "{other:?}");
        }
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn a_file_that_others_can_write_or_that_is_damaged_is_not_read() {
        let directory = scratch("distrusted");
        let path = directory.join(FILE);
        let conditions = Conditions::now();
        write(&path, Abilities::ALL, conditions.clone()).expect("written");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("changed");
        assert_eq!(read(&path, &conditions), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        assert_eq!(read(&path, &conditions), Some(Abilities::ALL));
        fs::write(&path, "{").expect("written");
        assert_eq!(read(&path, &conditions), None);
        fs::remove_dir_all(directory).expect("removed");
    }
}
