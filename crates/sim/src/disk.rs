//! A disk that crashes.
//!
//! A process is killed ([`Crash::Killed`]) or the power fails ([`Crash::Power`]). A killed process loses nothing that it
//! wrote. A power failure loses what was not synced: of a file's unsynced writes any subset survives, whatever their
//! order, and each sector of a surviving write holds the new bytes, the old ones, zeros or garbage. Of the unsynced
//! changes to names a prefix survives. Bytes outside of the range of a write are never touched by it.
//!
//! A sync that fails may have dropped writes for good, so that a later sync succeeds without them, as Linux does.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use base::Disk;

use crate::Rng;

const SECTOR: u64 = 512;

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// By SIGKILL.
    Killed,
    /// With its machine.
    Power,
}

/// A directory on a disk that crashes. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct CrashDisk(Arc<Mutex<State>>);

/// An open file.
#[derive(Clone, Copy, Debug)]
pub struct CrashFile(usize);

#[derive(Debug)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    /// Changes to names that are not synced.
    changes: Vec<Change>,
    rng: Rng,
    /// Calls so far.
    calls: u64,
    /// The call during which the process dies.
    dies_at: Option<u64>,
    /// The most bytes of all files.
    room: u64,
    /// One call of so many fails; 0 for none.
    fails_one_in: u64,
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// What is not synced.
    writes: Vec<Write>,
}

#[derive(Debug)]
enum Write {
    Octets(u64, Vec<u8>),
    Length(u64),
}

#[derive(Clone, Debug)]
enum Change {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl CrashDisk {
    /// An empty disk whose chance comes from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: Vec::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            changes: Vec::new(),
            rng: Rng::stream(seed, &["disk"]),
            calls: 0,
            dies_at: None,
            room: u64::MAX,
            fails_one_in: 0,
        })))
    }

    /// The process dies during a call, after `calls` further ones. Every call after that fails, until
    /// [`CrashDisk::crash`].
    pub fn die_after(&self, calls: u64) {
        let mut state = self.lock();
        state.dies_at = Some(state.calls + calls);
    }

    /// Whether the process has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock().is_dead()
    }

    /// Writes beyond so many bytes in all files fail, as on a full disk.
    pub fn set_room(&self, octets: u64) {
        self.lock().room = octets;
    }

    /// One call of so many fails; 0 for none.
    pub fn fail_one_in(&self, calls: u64) {
        self.lock().fails_one_in = calls;
    }

    /// Ends the process. What survives is on the disk then; after [`Crash::Killed`], it still needs a sync.
    pub fn crash(&self, crash: Crash) {
        let mut state = self.lock();
        state.dies_at = None;
        state.fails_one_in = 0;
        if crash == Crash::Killed {
            return;
        }
        let State {
            files,
            names,
            synced_names,
            changes,
            rng,
            ..
        } = &mut *state;
        for file in files {
            let writes = core::mem::take(&mut file.writes);
            for write in &writes {
                if rng.chance(0.6) {
                    tear(write, &mut file.synced, rng);
                }
            }
            file.now.clone_from(&file.synced);
        }
        let kept = rng.below(changes.len() as u64 + 1) as usize;
        for change in changes.drain(..).take(kept) {
            change.apply(synced_names);
        }
        names.clone_from(synced_names);
    }

    /// The bytes of a file, as a process sees them.
    #[must_use]
    pub fn octets(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        let at = *state.names.get(name)?;
        Some(state.files[at].now.clone())
    }

    /// Puts a file on the disk, synced and with its name.
    pub fn put(&self, name: &str, octets: &[u8]) {
        let mut state = self.lock();
        let at = state.files.len();
        state.files.push(Content {
            now: octets.to_vec(),
            synced: octets.to_vec(),
            writes: Vec::new(),
        });
        state.names.insert(name.to_owned(), at);
        state.synced_names.insert(name.to_owned(), at);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics with the lock")
    }
}

/// Applies what a power failure leaves of a write.
fn tear(write: &Write, to: &mut Vec<u8>, rng: &mut Rng) {
    let (offset, octets) = match write {
        Write::Length(length) => return to.resize(*length as usize, 0),
        Write::Octets(offset, octets) => (*offset, octets),
    };
    // Most writes survive whole; the others lose sectors one by one.
    let is_whole = rng.chance(0.5);
    let mut done = 0;
    while done < octets.len() {
        let start = offset + done as u64;
        let next = (start / SECTOR + 1) * SECTOR;
        let end = octets.len().min((next - offset) as usize);
        let mut sector = octets[done..end].to_vec();
        done = end;
        match rng.below(4) {
            _ if is_whole => {}
            0 => continue,
            1 => sector.fill(0),
            2 => rng.fill(&mut sector),
            _ => {}
        }
        place(to, start, &sector);
    }
}

fn place(to: &mut Vec<u8>, offset: u64, octets: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + octets.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    to[start..end].copy_from_slice(octets);
}

impl Write {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Write::Octets(offset, octets) => place(to, *offset, octets),
            Write::Length(length) => to.resize(*length as usize, 0),
        }
    }
}

impl Change {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Change::Create(name, at) => drop(names.insert(name, at)),
            Change::Remove(name) => drop(names.remove(&name)),
            Change::Rename(from, to) => {
                if let Some(at) = names.remove(&from) {
                    names.insert(to, at);
                }
            }
        }
    }
}

impl State {
    /// Counts a call. `Ok(true)` if it is done, `Ok(false)` if the process dies while it is done.
    fn enter(&mut self) -> io::Result<bool> {
        self.calls += 1;
        match self.dies_at {
            Some(at) if self.calls > at + 1 => return Err(io::Error::other("the process is dead")),
            Some(at) if self.calls == at + 1 => return Ok(false),
            _ => {}
        }
        match self.fails_one_in > 0 && self.rng.below(self.fails_one_in) == 0 {
            true => Err(io::Error::other("Input/output error")),
            false => Ok(true),
        }
    }

    /// Enters a call that is done as a whole or not at all; half of those during which the process dies are done.
    fn at_once(&mut self) -> io::Result<()> {
        match self.enter()? || self.rng.chance(0.5) {
            true => Ok(()),
            false => Err(io::Error::other("the process died")),
        }
    }

    fn is_dead(&self) -> bool {
        self.dies_at.is_some_and(|at| self.calls > at)
    }

    fn change(&mut self, change: Change) {
        self.changes.push(change.clone());
        change.apply(&mut self.names);
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        let at = self.names.get(name).copied();
        at.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&mut self, file: usize, write: Write) {
        let content = &mut self.files[file];
        write.apply(&mut content.now);
        content.writes.push(write);
    }
}

impl Disk for CrashDisk {
    type File = CrashFile;

    fn names(&mut self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.at_once()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&mut self, name: &str) -> io::Result<CrashFile> {
        let mut state = self.lock();
        state.at_once()?;
        let at = state.files.len();
        state.files.push(Content::default());
        state.change(Change::Create(name.to_owned(), at));
        Ok(CrashFile(at))
    }

    fn open(&mut self, name: &str) -> io::Result<CrashFile> {
        let mut state = self.lock();
        state.at_once()?;
        state.find(name).map(CrashFile)
    }

    fn length(&mut self, file: &CrashFile) -> io::Result<u64> {
        let mut state = self.lock();
        state.at_once()?;
        Ok(state.files[file.0].now.len() as u64)
    }

    fn read(&mut self, file: &CrashFile, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.at_once()?;
        let from = state.files[file.0].now.get(offset as usize..);
        let from = from.and_then(|from| from.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&mut self, file: &CrashFile, octets: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.lock();
        let is_whole = state.enter()?;
        let used: u64 = state
            .names
            .values()
            .map(|at| state.files[*at].now.len() as u64)
            .sum();
        let grows =
            (offset + octets.len() as u64).saturating_sub(state.files[file.0].now.len() as u64);
        let room = state.room.saturating_sub(used);
        let (part, error) = if !is_whole {
            let part = state.rng.below(octets.len() as u64 + 1);
            (part, Some(io::Error::other("the process died")))
        } else if grows > room {
            let part = (octets.len() as u64).saturating_sub(grows - room);
            (part, Some(io::ErrorKind::StorageFull.into()))
        } else {
            (octets.len() as u64, None)
        };
        if part > 0 {
            state.write(
                file.0,
                Write::Octets(offset, octets[..part as usize].to_vec()),
            );
        }
        error.map_or(Ok(()), Err)
    }

    fn cut(&mut self, file: &CrashFile, length: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.at_once()?;
        state.write(file.0, Write::Length(length));
        Ok(())
    }

    fn sync(&mut self, file: &CrashFile) -> io::Result<()> {
        let mut state = self.lock();
        let entered = state.enter();
        if entered.is_err() && state.is_dead() {
            return entered.map(drop);
        }
        let State { files, rng, .. } = &mut *state;
        let content = &mut files[file.0];
        let (is_done, is_dead) = (matches!(entered, Ok(true)), matches!(entered, Ok(false)));
        for write in &content.writes {
            if is_done || rng.chance(0.5) {
                write.apply(&mut content.synced);
            }
        }
        // If the sync failed, the rest is forgotten. If only the process died, it is still to be synced.
        if !is_dead {
            content.writes.clear();
        }
        match entered? {
            true => Ok(()),
            false => Err(io::Error::other("the process died")),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.at_once()?;
        state.find(from)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.at_once()?;
        state.find(name)?;
        state.change(Change::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut state = self.lock();
        state.at_once()?;
        for change in core::mem::take(&mut state.changes) {
            change.apply(&mut state.synced_names);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a synced part and an unsynced one, and crashes.
    fn after(seed: u64, crash: Crash) -> Vec<u8> {
        let mut disk = CrashDisk::new(seed);
        let file = disk.create("a").unwrap();
        disk.write(&file, &[1; 700], 0).unwrap();
        disk.sync(&file).unwrap();
        disk.sync_names().unwrap();
        disk.write(&file, &[2; 2_000], 700).unwrap();
        disk.crash(crash);
        disk.octets("a").unwrap()
    }

    #[test]
    fn a_power_cut_tears_what_was_not_synced_and_nothing_else() {
        let all = [&[1; 700][..], &[2; 2_000]].concat();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            assert_eq!(after(seed, Crash::Killed), all);
            let left = after(seed, Crash::Power);
            assert_eq!(left[..700], [1; 700]);
            assert_eq!(left, after(seed, Crash::Power), "the same seed");
            seen.insert(left);
        }
        assert!(seen.contains(&all) && seen.contains(&all[..700]));
        assert!(seen.len() > 50, "{}", seen.len());
    }

    #[test]
    fn names_that_were_not_synced_survive_in_order() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let mut disk = CrashDisk::new(seed);
            disk.put("old", b"1");
            let file = disk.create("new").unwrap();
            disk.write(&file, b"2", 0).unwrap();
            disk.sync(&file).unwrap();
            disk.rename("new", "newer").unwrap();
            disk.remove("old").unwrap();
            disk.crash(Crash::Power);
            seen.insert(disk.names().unwrap());
        }
        let expected = [&["old"][..], &["new", "old"], &["newer", "old"], &["newer"]];
        assert_eq!(seen.len(), expected.len());
        assert!(
            expected
                .iter()
                .all(|names| seen.iter().any(|seen| seen == names))
        );
    }

    #[test]
    fn a_process_dies_at_its_call_and_a_full_disk_takes_what_fits() {
        let mut disk = CrashDisk::new(3);
        let file = disk.create("a").unwrap();
        disk.set_room(10);
        let error = disk.write(&file, &[1; 16], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.octets("a").unwrap(), [1; 10]);
        disk.write(&file, &[2; 10], 0).unwrap();
        disk.die_after(1);
        assert!(disk.sync(&file).is_ok() && !disk.is_dead());
        assert!(disk.write(&file, &[3; 4], 0).is_err() && disk.is_dead());
        assert!(disk.names().is_err() && disk.sync(&file).is_err());
        disk.crash(Crash::Killed);
        assert!(disk.names().is_ok() && !disk.is_dead());
    }
}
