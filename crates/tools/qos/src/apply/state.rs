//! What was there before, on disk: `remove` restores it, also after a crash or a kill.
//!
//! The file is written before the first change, and deleted after the last. It belongs to one network namespace and one
//! boot. An interface is known by its index: one that was deleted and made again is another one, and one that has a new
//! name is the same.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reactor::netlink::Netlink;
use serde::{Deserialize, Serialize};
use tc::{Handle, Tree};

use super::super::system;

const SCHEMA: &str = "qos.apply.state/2";
/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 20;

/// What a policy replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    schema: String,
    boot: String,
    namespace: Space,
    /// The interface towards the provider, as it was called.
    pub(super) wan: String,
    /// Its index; both name the file.
    pub(super) wan_index: u32,
    /// The interfaces whose queues change, as they were.
    pub(super) devices: Vec<Kept>,
    /// The interfaces made for arriving packets; the first one is in use, others could not be deleted yet.
    pub(super) ifbs: Vec<String>,
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

/// A network namespace. The inode is used again after its end; the cookie, which Linux has since 5.14, is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Space {
    inode: u64,
    cookie: Option<u64>,
}

/// The directory of states.
pub(crate) struct Store {
    directory: PathBuf,
    boot: String,
    namespace: Space,
}

/// Deletes a file that another process may have deleted.
fn removed(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: cannot be deleted", path.display()))
        }
        _ => Ok(()),
    }
}

fn exists(index: u32) -> bool {
    let found = Netlink::open().and_then(|mut netlink| netlink.link(index));
    matches!(found, Ok(Some(_)))
}

impl Store {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::metadata("/proc/thread-self/ns/net").context("/proc is missing")?;
        let cookie = Netlink::open().and_then(|netlink| netlink.namespace_cookie());
        Ok(Self {
            directory: directory.to_owned(),
            boot: boot.trim().to_owned(),
            namespace: Space {
                inode: namespace.ino(),
                cookie: cookie.ok(),
            },
        })
    }

    fn path(&self, state: &State) -> PathBuf {
        let Space { inode, cookie } = self.namespace;
        let namespace = cookie.unwrap_or(inode);
        let State { wan, wan_index, .. } = state;
        self.directory
            .join(format!("{wan}.{wan_index}.{namespace}.json"))
    }

    /// A state without interfaces.
    pub(super) fn empty(&self, wan: &str, wan_index: u32) -> State {
        State {
            schema: SCHEMA.to_owned(),
            boot: self.boot.clone(),
            namespace: self.namespace,
            wan: wan.to_owned(),
            wan_index,
            devices: Vec::new(),
            ifbs: Vec::new(),
            names: Vec::new(),
        }
    }

    /// The state of an interface, which may have been called otherwise, or be gone; `None` if nothing is applied to it.
    pub(super) fn load(&self, wan: &str) -> Result<Option<State>> {
        let index = system::interface(wan).map(|found| found.index);
        let mut states = self.states()?;
        let found = states
            .iter()
            .position(|state| Some(state.wan_index) == index);
        let found = found.or_else(|| {
            let is_called = |state: &State| {
                // Another interface that has its index has another name, and this state.
                state.wan == wan && (index.is_none() || !exists(state.wan_index))
            };
            states.iter().position(is_called)
        });
        Ok(found.map(|found| states.swap_remove(found)))
    }

    /// The interface whose policy has changed the interface `index` too, if it is not that of `wan` itself.
    pub(super) fn other(&self, wan: &str, index: u32) -> Option<String> {
        let own = self.load(wan).ok()?.map(|state| self.path(&state));
        let mut others = self.states().ok()?.into_iter();
        let other = others.find(|state| {
            Some(self.path(state)) != own && state.devices.iter().any(|kept| kept.index == index)
        })?;
        Some(other.wan)
    }

    /// The names of the policy that is applied to `device`; `None` if there is none, or its file cannot be read.
    pub(crate) fn names(&self, device: &str) -> Option<Names> {
        let files = fs::read_dir(&self.directory).ok()?;
        let states = files.filter_map(|file| self.read(&file.ok()?.path()).ok()?);
        let mut names = states.flat_map(|state| state.names);
        names.find(|names| names.device == device)
    }

    /// The states of this namespace. Deletes those of dead ones: of another boot, or with this namespace's inode and
    /// another cookie.
    fn states(&self) -> Result<Vec<State>> {
        let files = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            files => {
                files.with_context(|| format!("{}: cannot be read", self.directory.display()))?
            }
        };
        let mut states = Vec::new();
        for file in files {
            let path = file?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(state) = self.read(&path)? else {
                continue;
            };
            let Space { inode, cookie } = state.namespace;
            let is_dead = state.boot != self.boot
                || inode == self.namespace.inode && cookie != self.namespace.cookie;
            if state.schema == SCHEMA && !is_dead && state.namespace == self.namespace {
                states.push(state);
            } else if is_dead {
                removed(&path)?;
            }
        }
        Ok(states)
    }

    fn read(&self, path: &Path) -> Result<Option<State>> {
        let place = || format!("{}: cannot be read", path.display());
        let text = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found if found.as_ref().is_ok_and(|found| found.len() > BYTES_MAX) => {
                bail!("{}: is longer than 64 MiB; delete it", path.display())
            }
            _ => match fs::read_to_string(path) {
                // Another process has just deleted it.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                text => text.with_context(place)?,
            },
        };
        let state = serde_json::from_str(&text).with_context(|| {
            format!(
                "{}: is not a state of headend qos apply; delete it, and the queues with tc qdisc del dev IF root",
                path.display()
            )
        })?;
        Ok(Some(state))
    }

    /// Writes a state, whole or not at all, in place of the old one, which may have another name.
    pub(super) fn save(&self, state: &State, old: Option<&State>) -> Result<()> {
        let path = self.path(state);
        let old = old.map(|old| self.path(old));
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            let new = path.with_extension("new");
            let mut file = fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(state)?)?;
            file.sync_all()?;
            match old.filter(|old| *old != path && old.exists()) {
                // At any time there is one of them.
                Some(old) => fs::rename(&new, &old).and_then(|()| fs::rename(&old, &path))?,
                None => fs::rename(&new, &path)?,
            }
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

    pub(super) fn delete(&self, state: &State) -> Result<()> {
        removed(&self.path(state))
    }
}
