//! The audit log: one JSON line for each admission, refusal, change and end of a subscriber. docs/audit.md describes the
//! lines. Secrets are never part of them: a line is made of names, places and settings.
//!
//! A thread writes the file. The daemon never waits for it: a line that finds the queue full is counted, and so are lines
//! that the disk does not take. The file is rotated by its size, and opened again at each reload, so that another program
//! may rotate it. Start reading at [`start`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::config;

/// The version of the lines. A new field does not change it.
const SCHEMA: &str = "audit/1";
/// Lines that wait for the thread.
const QUEUE: usize = 8_192;
/// Bytes that are written at once.
const BATCH_OCTETS: usize = 256 << 10;
/// The pause after a write that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// How long the end of the daemon waits for the last lines.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// The audit log of the process, if one is configured.
static AUDIT: OnceLock<Audit> = OnceLock::new();

/// A message to the thread.
enum Message {
    Line(Vec<u8>),
    /// Opens the file again, with these settings.
    Open(config::Audit),
    /// Answers once all lines before are written.
    Flush(SyncSender<()>),
}

/// The daemon's end of the queue.
struct Audit {
    queue: SyncSender<Message>,
    counters: Arc<Counters>,
}

/// Lines that were lost, because the queue was full or the disk did not take them.
#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    lost: AtomicU64,
}

/// Starts the audit log, if one is configured.
///
/// # Errors
/// The file cannot be opened, or the thread not started.
pub(crate) fn start(settings: Option<&config::Audit>) -> Result<()> {
    if let Some(settings) = settings {
        let _ = AUDIT.set(Audit::open(settings)?);
    }
    Ok(())
}

/// Opens the file again, perhaps with new settings, if there is an audit log.
pub(crate) fn reopen(settings: Option<&config::Audit>) {
    if let (Some(audit), Some(settings)) = (AUDIT.get(), settings) {
        audit.send(Message::Open(settings.clone()));
    }
}

/// Waits until every line is written, if there is an audit log, but not long: the daemon ends.
pub(crate) fn finish() {
    if let Some(audit) = AUDIT.get() {
        audit.finish();
    }
}

/// Lines written and lines lost, if there is an audit log.
pub(crate) fn counters() -> Option<[u64; 2]> {
    let counters = &AUDIT.get()?.counters;
    Some([&counters.written, &counters.lost].map(|one| one.load(Relaxed)))
}

/// Writes a line about an event. `fields` is called only if there is an audit log.
pub(crate) fn note(event: &str, fields: impl FnOnce() -> Value) {
    if let Some(audit) = AUDIT.get() {
        audit.send(Message::Line(line(event, fields())));
    }
}

fn line(event: &str, fields: Value) -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_ms = since.map_or(0, |since| since.as_millis() as u64);
    let mut all = json!({ "schema": SCHEMA, "at_s": at_ms as f64 / 1_000.0, "event": event });
    if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
        all.extend(fields);
    }
    let mut octets = all.to_string().into_bytes();
    octets.push(b'\n');
    octets
}

impl Audit {
    fn open(settings: &config::Audit) -> Result<Self> {
        let counters = Arc::new(Counters::default());
        let (queue, messages) = sync_channel(QUEUE);
        let log = LogFile::open(settings)
            .with_context(|| format!("the audit log {}", settings.file.display()))?;
        let own = Arc::clone(&counters);
        thread::Builder::new()
            .name("audit".into())
            .spawn(move || {
                if let Err(error) = reactor::drop_capabilities() {
                    tracing::warn!(%error, "the thread of the audit log keeps its privileges");
                }
                Writer::new(log, own).run(&messages);
            })
            .context("the thread of the audit log")?;
        Ok(Self { queue, counters })
    }

    /// Waits until every line is written, at most [`FINISH_MAX`].
    fn finish(&self) {
        let (done, wait) = sync_channel(1);
        let deadline = Instant::now() + FINISH_MAX;
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.queue.try_send(message) {
            if Instant::now() >= deadline {
                break;
            }
            message = back;
            thread::sleep(Duration::from_millis(1));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if wait.recv_timeout(left).is_err() {
            tracing::error!("the last lines of the audit log are lost: its disk is too slow");
        }
    }

    fn send(&self, message: Message) {
        match self.queue.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                // The first loss is reported; the counter has all.
                if self.counters.lost.fetch_add(1, Relaxed) == 0 {
                    tracing::warn!("the audit log loses lines: its queue is full");
                }
            }
        }
    }
}

/// The file, and how it is rotated.
struct LogFile {
    settings: config::Audit,
    file: File,
    octets: u64,
}

impl LogFile {
    fn open(settings: &config::Audit) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&settings.file)?;
        let octets = file.metadata()?.len();
        Ok(Self {
            settings: settings.clone(),
            file,
            octets,
        })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let most = self.settings.rotate_octets;
        if most > 0 && self.octets > 0 && self.octets + lines.len() as u64 > most {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(lines) {
            // No part of a line stays.
            let _ = self.file.set_len(self.octets);
            return Err(error);
        }
        self.octets += lines.len() as u64;
        Ok(())
    }

    /// Moves the file aside: `FILE.1` is the newest of the old ones.
    fn rotate(&mut self) -> io::Result<()> {
        let keep = self.settings.keep;
        let of = |number: u32| numbered(&self.settings.file, number);
        for number in (1..keep).rev() {
            match fs::rename(of(number), of(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        fs::rename(&self.settings.file, of(1))?;
        *self = Self::open(&self.settings)?;
        Ok(())
    }
}

fn numbered(file: &Path, number: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The thread.
struct Writer {
    log: LogFile,
    counters: Arc<Counters>,
    batch: Vec<u8>,
    lines: u64,
    /// Whether the last write failed, which was reported.
    has_failed: bool,
}

impl Writer {
    fn new(log: LogFile, counters: Arc<Counters>) -> Self {
        Self {
            log,
            counters,
            batch: Vec::new(),
            lines: 0,
            has_failed: false,
        }
    }

    /// Serves the queue until the daemon ends.
    fn run(&mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let mut next = Some(first);
            while let Some(message) = next {
                self.take(message);
                next = match self.batch.len() < BATCH_OCTETS {
                    true => messages.try_recv().ok(),
                    false => None,
                };
            }
            self.write();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Line(line) => {
                self.batch.extend_from_slice(&line);
                self.lines += 1;
            }
            Message::Open(settings) => {
                self.write();
                match LogFile::open(&settings) {
                    Ok(log) => self.log = log,
                    Err(error) => {
                        let file = settings.file.display();
                        tracing::error!(%file, %error, "the audit log cannot be opened; the old file is kept");
                    }
                }
            }
            Message::Flush(done) => {
                self.write();
                let _ = done.send(());
            }
        }
    }

    /// Writes what was collected. Lines that the disk does not take are lost, and counted.
    fn write(&mut self) {
        if self.lines == 0 {
            return;
        }
        match self.log.write(&self.batch) {
            Ok(()) => {
                self.counters.written.fetch_add(self.lines, Relaxed);
                if core::mem::take(&mut self.has_failed) {
                    let lost = self.counters.lost.load(Relaxed);
                    tracing::info!(lost, "the audit log is written again");
                }
            }
            Err(error) => {
                self.counters.lost.fetch_add(self.lines, Relaxed);
                if !core::mem::replace(&mut self.has_failed, true) {
                    let file = self.log.settings.file.display();
                    tracing::error!(%file, %error, "the audit log cannot be written; its lines are lost");
                }
                thread::sleep(PAUSE);
            }
        }
        self.batch.clear();
        self.lines = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn settings(name: &str, rotate_octets: u64) -> config::Audit {
        let directory = std::env::temp_dir();
        let file = directory.join(format!("headend-audit-{name}-{}", std::process::id()));
        for number in 1..5 {
            let _ = fs::remove_file(numbered(&file, number));
        }
        let _ = fs::remove_file(&file);
        config::Audit {
            file,
            rotate_octets,
            keep: 2,
        }
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn note(audit: &Audit, number: u64) {
        audit.send(Message::Line(line("tested", json!({ "number": number }))));
    }

    #[test]
    fn each_line_is_json_of_a_schema_and_only_the_owner_may_read_it() {
        let settings = settings("lines", 0);
        let audit = Audit::open(&settings).unwrap();
        (0..3).for_each(|number| note(&audit, number));
        audit.finish();
        let all = lines(&settings.file);
        assert_eq!(all.len(), 3);
        assert_eq!(
            (&all[2]["schema"], &all[2]["number"]),
            (&json!("audit/1"), &json!(2))
        );
        assert!(all[0]["at_s"].as_f64().unwrap() > 1e9);
        let mode = fs::metadata(&settings.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_full_file_is_moved_aside_and_only_so_many_are_kept() {
        let settings = settings("rotated", 400);
        let audit = Audit::open(&settings).unwrap();
        for number in 0..40 {
            note(&audit, number);
            audit.finish();
        }
        let last = lines(&settings.file).last().unwrap()["number"].clone();
        assert_eq!(last, json!(39));
        for number in [1, 2] {
            let octets = fs::metadata(numbered(&settings.file, number))
                .unwrap()
                .len();
            assert!(octets <= 400, "{octets}");
        }
        assert!(!numbered(&settings.file, 3).exists());
        assert_eq!(audit.counters.written.load(Relaxed), 40);
    }

    #[test]
    fn a_file_that_another_program_moved_is_opened_again() {
        let settings = settings("moved", 0);
        let audit = Audit::open(&settings).unwrap();
        note(&audit, 1);
        audit.finish();
        fs::rename(&settings.file, numbered(&settings.file, 4)).unwrap();
        audit.send(Message::Open(settings.clone()));
        note(&audit, 2);
        audit.finish();
        assert_eq!(lines(&settings.file)[0]["number"], json!(2));
        assert_eq!(lines(&numbered(&settings.file, 4))[0]["number"], json!(1));
    }

    #[test]
    fn a_disk_that_is_full_costs_only_lines_and_they_are_counted() {
        let mut settings = settings("full", 0);
        settings.file = "/dev/full".into();
        let audit = Audit::open(&settings).unwrap();
        (0..5).for_each(|number| note(&audit, number));
        audit.finish();
        assert_eq!(audit.counters.lost.load(Relaxed), 5);
        assert_eq!(audit.counters.written.load(Relaxed), 0);
    }
}
