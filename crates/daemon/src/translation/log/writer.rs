//! The thread that writes the logs.
//!
//! Records go to the store at once, and are made durable within [`FLUSH`]. IPFIX records wait as long for a full message.
//! While the store cannot be written, because its disk is full, up to [`UNSTORED_MAX`] records wait in memory, and the
//! thread tries again every [`FLUSH`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use nat::log::{Clock, Exporter};
use nat::{Block, Event};
use natlog::{Entry, Kind, Store, StoreError};
use reactor::clock;

use super::send::Collector;
use super::{Item, Shared, Task};
use crate::config::NatLog;

/// How long records may wait for the disk or for a full message.
const FLUSH: Duration = Duration::from_secs(1);
/// How long the thread sleeps if nothing waits.
const REST: Duration = Duration::from_secs(60);
/// Records that wait for a store that cannot be written.
const UNSTORED_MAX: usize = 262_144;
/// Records that are written at once.
const CHUNK: usize = 1024;
/// The largest IPFIX message, in bytes: it fits into an Ethernet frame, also over IPv6.
const MESSAGE_MAX: usize = 1400;

pub(super) struct Writer {
    shared: Arc<Shared>,
    store: Option<Disk>,
    ipfix: Option<(Collector, Exporter)>,
    domain: u32,
    syslog: Option<Collector>,
    host: String,
    /// Names of subscribers with blocks, and how many each has.
    owners: HashMap<u64, (Box<[u8]>, u32)>,
    message: Vec<u8>,
    line: String,
}

/// The store, and what waits for it.
struct Disk {
    store: Store,
    days: u32,
    unstored: Vec<(Entry, Box<[u8]>)>,
    is_failing: bool,
    is_dirty: bool,
    tried: Option<Instant>,
    /// The day at which old segments were deleted last, and the day of the last wish.
    retained: u64,
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// The relation of the loop's clock to the calendar.
fn calendar() -> Clock {
    let at = clock::now().since(base::Instant::ZERO).as_millis();
    Clock {
        origin_ms: now_ms().saturating_sub(at),
    }
}

impl Writer {
    pub(super) fn open(settings: &NatLog, shared: Arc<Shared>) -> Result<Self> {
        let store = settings.store.as_deref();
        let store = store.map(|path| Disk::open(path, settings.days));
        let mut writer = Self {
            shared,
            store: store.transpose().context("store")?,
            ipfix: None,
            domain: 0,
            syslog: None,
            host: String::new(),
            owners: HashMap::new(),
            message: Vec::new(),
            line: String::new(),
        };
        if let Err(error) = writer.set(settings) {
            // The collector may be reachable later; the rest of the daemon does not depend on it.
            tracing::error!(%error, "nat log: no socket for a collector");
        }
        Ok(writer)
    }

    /// Applies settings, without the store's directory.
    fn set(&mut self, settings: &NatLog) -> std::io::Result<()> {
        if let Some(disk) = &mut self.store {
            disk.days = settings.days;
            disk.retained = 0;
        }
        self.host.clone_from(&settings.host);
        if self.host.is_empty() {
            self.host.push('-');
        }
        let ipfix = self.ipfix.as_ref().map(|(collector, _)| collector.address);
        if ipfix != settings.ipfix || self.domain != settings.ipfix_domain {
            self.ipfix = None;
            self.domain = settings.ipfix_domain;
            if let Some(address) = settings.ipfix {
                let collector = Collector::open("IPFIX", address)?;
                let exporter = Exporter::new(self.domain, calendar(), MESSAGE_MAX);
                self.ipfix = Some((collector, exporter));
            }
        }
        let syslog = self.syslog.as_ref().map(|collector| collector.address);
        if syslog != settings.syslog {
            let open = |address| Collector::open("syslog", address);
            self.syslog = settings.syslog.map(open).transpose()?;
        }
        Ok(())
    }

    /// Works until the loop closes the queue.
    pub(super) fn run(&mut self, tasks: &Receiver<Task>) {
        self.templates();
        let mut flushed = Instant::now();
        loop {
            let rest = if self.is_waiting() { FLUSH } else { REST };
            let left = rest.saturating_sub(flushed.elapsed());
            match tasks.recv_timeout(left.max(Duration::from_millis(1))) {
                Ok(Task::Write(items)) => self.write(items),
                Ok(Task::Set(settings)) => {
                    if let Err(error) = self.set(&settings) {
                        tracing::error!(%error, "nat log: no socket for a collector");
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if flushed.elapsed() >= FLUSH {
                self.flush();
                flushed = Instant::now();
            }
        }
        self.flush();
        if let Some(disk) = &mut self.store {
            disk.end();
        }
    }

    fn is_waiting(&self) -> bool {
        let disk = self.store.as_ref();
        let ipfix = self.ipfix.as_ref();
        disk.is_some_and(|disk| disk.is_dirty || !disk.unstored.is_empty())
            || ipfix.is_some_and(|(_, exporter)| exporter.waiting() > 0)
    }

    fn write(&mut self, items: Vec<Item>) {
        let count = items.len() as u64;
        let clock = calendar();
        if let Some((_, exporter)) = &mut self.ipfix {
            exporter.set_clock(clock);
        }
        for Item { event, name } in items {
            let name = self.name(&event, name);
            if let Some((_, exporter)) = &mut self.ipfix {
                exporter.push(&event);
            }
            if let Some(syslog) = &mut self.syslog {
                self.line.clear();
                let subscriber = printable(&name);
                nat::log::line(&mut self.line, &event, clock, &self.host, &subscriber);
                let counter = match syslog.send(self.line.as_bytes()) {
                    true => &self.shared.syslog_lines,
                    false => &self.shared.syslog_failed,
                };
                counter.fetch_add(1, Relaxed);
            }
            if let Some(disk) = &mut self.store
                && let Some(entry) = entry(&event, clock)
            {
                disk.push(entry, name, &self.shared);
            }
        }
        if let Some(disk) = &mut self.store {
            disk.work(&self.shared);
        }
        self.export(false);
        self.shared.waiting.fetch_sub(count, Relaxed);
    }

    /// The name of an event's subscriber, which may have left before its blocks were freed.
    fn name(&mut self, event: &Event, name: Box<[u8]>) -> Box<[u8]> {
        match event {
            Event::BlockAllocated(block, _) => {
                let owner = self.owners.entry(block.tag).or_default();
                if !name.is_empty() {
                    owner.0.clone_from(&name);
                }
                owner.1 += 1;
                name
            }
            Event::BlockFreed(block, _) => {
                let Some(owner) = self.owners.get_mut(&block.tag) else {
                    return name;
                };
                owner.1 -= 1;
                match owner.1 {
                    0 => self.owners.remove(&block.tag).map_or(name, |owner| owner.0),
                    _ => owner.0.clone(),
                }
            }
            Event::ForwardAdded(forward, _) | Event::ForwardRemoved(forward, _) => {
                let owner = self.owners.get(&forward.tag);
                owner.map_or(name, |owner| owner.0.clone())
            }
            Event::PoolUsedUp { .. } | Event::SubscriberLimit { .. } => name,
        }
    }

    /// Does what waits: once a second while anything waits, otherwise once a minute.
    fn flush(&mut self) {
        self.templates();
        self.export(true);
        if let Some(disk) = &mut self.store {
            disk.work(&self.shared);
            disk.sync();
            disk.retain();
        }
    }

    /// Sends the IPFIX templates if they are due.
    fn templates(&mut self) {
        if let Some((collector, exporter)) = &mut self.ipfix {
            self.message.clear();
            let now_s = (now_ms() / 1000) as u32;
            if exporter.poll_templates(now_s, &mut self.message).is_some() {
                send(collector, &self.message, &self.shared);
            }
        }
    }

    /// Sends IPFIX records: full messages, or all.
    fn export(&mut self, all: bool) {
        let Some((collector, exporter)) = &mut self.ipfix else {
            return;
        };
        while exporter.waiting() >= MESSAGE_MAX || all && exporter.waiting() > 0 {
            self.message.clear();
            let now_s = (now_ms() / 1000) as u32;
            if exporter.poll_message(now_s, &mut self.message).is_none() {
                break;
            }
            send(collector, &self.message, &self.shared);
        }
    }
}

fn send(collector: &mut Collector, message: &[u8], shared: &Shared) {
    let counter = match collector.send(message) {
        true => &shared.ipfix_messages,
        false => &shared.ipfix_failed,
    };
    counter.fetch_add(1, Relaxed);
}

/// A name as it is in a syslog line: without spaces and control characters.
fn printable(name: &[u8]) -> String {
    if name.is_empty() {
        return "-".to_owned();
    }
    let shown = |octet: &u8| match octet {
        b'!'..=b'~' => char::from(*octet),
        _ => '?',
    };
    name.iter().map(shown).collect()
}

/// The record of a block that was allocated or freed.
fn entry(event: &Event, clock: Clock) -> Option<Entry> {
    let (kind, block, at) = match event {
        Event::BlockAllocated(block, at) => (Kind::Allocated, block, at),
        Event::BlockFreed(block, at) => (Kind::Freed, block, at),
        Event::ForwardAdded(..)
        | Event::ForwardRemoved(..)
        | Event::PoolUsedUp { .. }
        | Event::SubscriberLimit { .. } => return None,
    };
    let Block {
        inside,
        external,
        first,
        last,
        ..
    } = *block;
    Some(Entry {
        kind,
        at_ms: clock.millis(*at),
        external,
        first,
        last,
        inside,
        tag: 0,
    })
}

impl Disk {
    /// Opens the store. Blocks that an earlier run had are recorded as nobody's.
    fn open(path: &Path, days: u32) -> Result<Self> {
        let settings = natlog::Settings {
            days,
            ..natlog::Settings::default()
        };
        let mut store = Store::open(path, settings)?;
        let torn = store.torn_octets();
        if torn > 0 {
            tracing::warn!(
                bytes = torn,
                "nat log: the end of the store was damaged, and is cut off"
            );
        }
        let lost = store.lose_all(now_ms())?;
        if lost > 0 {
            tracing::warn!(
                blocks = lost,
                "nat log: blocks of an earlier run are recorded as ended now"
            );
        }
        store.sync()?;
        Ok(Self {
            store,
            days,
            unstored: Vec::new(),
            is_failing: false,
            is_dirty: false,
            tried: None,
            retained: 0,
        })
    }

    fn push(&mut self, entry: Entry, name: Box<[u8]>, shared: &Shared) {
        if self.unstored.len() >= UNSTORED_MAX {
            shared.store_lost.fetch_add(1, Relaxed);
            return;
        }
        self.unstored.push((entry, name));
    }

    /// Writes what waits, unless that failed less than a second ago.
    fn work(&mut self, shared: &Shared) {
        let is_early = |at: Instant| self.is_failing && at.elapsed() < FLUSH;
        if self.unstored.is_empty() || self.tried.is_some_and(is_early) {
            return;
        }
        let (done, result) = self.write();
        self.unstored.drain(..done);
        self.is_dirty |= done > 0;
        self.tried = Some(Instant::now());
        shared.stored.fetch_add(done as u64, Relaxed);
        let waiting = self.unstored.len() as u64;
        shared.unstored.store(waiting, Relaxed);
        match (&result, self.is_failing) {
            (Err(error), false) => {
                tracing::error!(%error, "nat log: the store cannot be written; records wait in memory");
            }
            (Ok(()), true) => {
                let lost = shared.store_lost.load(Relaxed);
                tracing::warn!(lost, "nat log: the store is written again");
            }
            _ => {}
        }
        self.is_failing = result.is_err();
    }

    /// Writes records, and returns how many were written.
    fn write(&mut self) -> (usize, Result<(), StoreError>) {
        let mut done = 0;
        for chunk in self.unstored.chunks(CHUNK) {
            if let Err(error) = self.store.append_named(chunk) {
                return (done, Err(error));
            }
            done += chunk.len();
        }
        (done, Ok(()))
    }

    /// Makes everything durable.
    fn sync(&mut self) {
        if !self.is_dirty {
            return;
        }
        match self.store.sync() {
            Ok(()) => self.is_dirty = false,
            Err(error) if !self.is_failing => {
                tracing::error!(%error, "nat log: the store cannot be written");
                self.is_failing = true;
            }
            Err(_) => {}
        }
    }

    /// Deletes old segments and names, once a day.
    fn retain(&mut self) {
        let now = now_ms();
        let today = now / 86_400_000 + 1;
        if self.retained == today {
            return;
        }
        self.retained = today;
        self.store.set_days(self.days);
        match self.store.retain(now) {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "nat log: files beyond [nat.log] days were deleted"),
            Err(error) => tracing::error!(%error, "nat log: an old segment cannot be deleted"),
        }
    }

    /// Records that all blocks are nobody's, because the translation ends.
    fn end(&mut self) {
        let lost = self.store.lose_all(now_ms());
        let synced = lost.and_then(|_| self.store.sync());
        if let Err(error) = synced {
            tracing::error!(%error, "nat log: the end of blocks is not recorded; the next start does it");
        }
    }
}
