//! What was there before, on disk: `remove` restores it, also after a crash or a kill.
//!
//! The file is written before the first change, and deleted after the last. It belongs to one network namespace and one
//! boot; an interface that was deleted and made again is another one.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tc::{Handle, Tree};

const SCHEMA: &str = "qos.apply.state/1";
/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 20;

/// What a policy replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    schema: String,
    boot: String,
    namespace: u64,
    /// The interface towards the provider; names the file.
    pub(super) wan: String,
    /// The interfaces whose queues change, as they were.
    pub(super) devices: Vec<Kept>,
    /// The interface made for arriving packets.
    pub(super) ifb: Option<String>,
    /// The policy's names, for `headend qos graph`.
    #[serde(default)]
    names: Vec<Names>,
}

/// The policy's names for the queues of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Names {
    device: String,
    /// Handle and name.
    classes: Vec<(Handle, String)>,
    /// In the order of priorities from 1.
    filters: Vec<String>,
}

impl Names {
    /// The policy's name for a class, whose handle is as tc prints it.
    pub(crate) fn of_class(&self, handle: &str) -> Option<&str> {
        let mut classes = self.classes.iter();
        let found = classes.find(|(own, _)| own.to_string() == handle)?;
        Some(&found.1)
    }

    /// The section of the policy that a filter of the first discipline comes from.
    pub(crate) fn of_filter(&self, priority: usize) -> Option<&str> {
        let name = self.filters.get(priority.checked_sub(1)?)?;
        Some(name)
    }
}

impl State {
    /// Notes the policy's names for the queues of an interface.
    pub(super) fn name(&mut self, device: &str, classes: &[(Handle, String)], filters: &[String]) {
        if !classes.is_empty() {
            self.names.push(Names {
                device: device.to_owned(),
                classes: classes.to_vec(),
                filters: filters.to_vec(),
            });
        }
    }
}

/// An interface as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) before: Tree,
}

/// The directory of states.
pub(crate) struct Store {
    directory: PathBuf,
    boot: String,
    namespace: u64,
}

impl Store {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::metadata("/proc/thread-self/ns/net").context("/proc is missing")?;
        Ok(Self {
            directory: directory.to_owned(),
            boot: boot.trim().to_owned(),
            namespace: namespace.ino(),
        })
    }

    fn path(&self, wan: &str) -> PathBuf {
        self.directory
            .join(format!("{wan}.{}.json", self.namespace))
    }

    /// A state without interfaces.
    pub(super) fn empty(&self, wan: &str) -> State {
        State {
            schema: SCHEMA.to_owned(),
            boot: self.boot.clone(),
            namespace: self.namespace,
            wan: wan.to_owned(),
            devices: Vec::new(),
            ifb: None,
            names: Vec::new(),
        }
    }

    /// The state of an interface; `None` if nothing is applied to it.
    pub(super) fn load(&self, wan: &str) -> Result<Option<State>> {
        let state = self.read(&self.path(wan))?;
        Ok(state.filter(|state| state.wan == wan))
    }

    /// The interface whose policy has changed the interface `index` too, if it is not `wan` itself.
    pub(super) fn other(&self, wan: &str, index: u32) -> Option<String> {
        let files = fs::read_dir(&self.directory).ok()?;
        let states = files.filter_map(|file| self.read(&file.ok()?.path()).ok()?);
        let mut others = states.filter(|state| state.wan != wan);
        let other = others.find(|state| state.devices.iter().any(|kept| kept.index == index))?;
        Some(other.wan)
    }

    /// The names of the policy that is applied to `device`; `None` if there is none, or its file cannot be read.
    pub(crate) fn names(&self, device: &str) -> Option<Names> {
        let files = fs::read_dir(&self.directory).ok()?;
        let states = files.filter_map(|file| self.read(&file.ok()?.path()).ok()?);
        let mut names = states.flat_map(|state| state.names);
        names.find(|names| names.device == device)
    }

    fn read(&self, path: &Path) -> Result<Option<State>> {
        let place = || format!("{}: cannot be read", path.display());
        let text = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found if found.as_ref().is_ok_and(|found| found.len() > BYTES_MAX) => {
                bail!("{}: is longer than 64 MiB; delete it", path.display())
            }
            _ => fs::read_to_string(path).with_context(place)?,
        };
        let state: State = serde_json::from_str(&text).with_context(|| {
            format!(
                "{}: is not a state of headend qos apply; delete it, and the queues with tc qdisc del dev IF root",
                path.display()
            )
        })?;
        let is_ours =
            state.schema == SCHEMA && state.boot == self.boot && state.namespace == self.namespace;
        Ok(is_ours.then_some(state))
    }

    /// Writes a state, whole or not at all.
    pub(super) fn save(&self, state: &State) -> Result<()> {
        let path = self.path(&state.wan);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            let new = path.with_extension("new");
            let mut file = fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(state)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            // The new name, too, is on disk before the first change.
            fs::File::open(&self.directory)?.sync_all()
        };
        write().with_context(|| {
            format!(
                "{}: cannot be written, so nothing was changed; give --state DIRECTORY",
                path.display()
            )
        })
    }

    pub(super) fn delete(&self, wan: &str) -> Result<()> {
        let path = self.path(wan);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}: cannot be deleted", path.display()))
            }
            _ => Ok(()),
        }
    }
}
