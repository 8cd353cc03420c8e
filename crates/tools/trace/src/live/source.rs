//! An interface as a source of packets: waits for blocks of its ring, for signals and for the end of the time.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use capfile::{Block, PcapWriter, Resolution};
use reactor::capture::{Capture, CaptureError, CaptureStats, HOLD_MS};

use super::frames;
use crate::low::LowArgs;
use crate::stop::{Stop, Woken};

/// The longest wait: so often timed work gets its turn if no frame passes.
const WAIT: Duration = Duration::from_millis(200);

/// The kernel hands over a frame after this time at the latest, with some time for this process to run.
const HOLD: Duration = Duration::from_millis(2 * HOLD_MS as u64);

/// The counts of a capture, shared with its report.
#[derive(Debug, Default)]
pub(super) struct Meter {
    captured: AtomicU64,
    dropped: AtomicU64,
    unreadable: AtomicU64,
    /// The time up to which all frames have been read, in nanoseconds since 1970.
    clock: AtomicI64,
}

impl Meter {
    pub(super) fn stats(&self) -> CaptureStats {
        CaptureStats {
            captured: self.captured.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            unreadable: self.unreadable.load(Ordering::Relaxed),
        }
    }

    /// The time up to which all frames have been read; 0 before the first.
    pub(super) fn clock(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn note(&self, stats: CaptureStats) {
        self.captured.store(stats.captured, Ordering::Relaxed);
        self.dropped.store(stats.dropped, Ordering::Relaxed);
        self.unreadable.store(stats.unreadable, Ordering::Relaxed);
    }

    fn advance(&self, time: i64) {
        self.clock.fetch_max(time, Ordering::Relaxed);
    }
}

/// The present time in nanoseconds since 1970, as frames have it.
pub(super) fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}

/// The interface.
pub(super) struct Interface {
    capture: Capture,
    stop: Arc<Stop>,
    meter: Arc<Meter>,
    /// When the capture ends.
    end: Option<Instant>,
    save: Option<Save>,
    /// Frames for which a block had no room.
    full: u64,
    phase: Phase,
}

enum Phase {
    Running,
    /// No more frames pass, and those in the ring are read until then. A fault is why the capture ends.
    Draining(Instant, Option<CaptureError>),
}

impl Interface {
    /// # Errors
    /// The file of `--write` cannot be created.
    pub(super) fn new(
        low: &LowArgs,
        capture: Capture,
        meter: Arc<Meter>,
        stop: Arc<Stop>,
    ) -> Result<Interface> {
        let save = match &low.write {
            Some(path) => Some(Save::new(path.clone(), &capture)?),
            None => None,
        };
        let lasts = low.duration.map(|time| Duration::from_nanos(time as u64));
        Ok(Interface {
            capture,
            stop,
            meter,
            end: lasts.and_then(|lasts| Instant::now().checked_add(lasts)),
            save,
            full: 0,
            phase: Phase::Running,
        })
    }

    /// Reads the oldest block of the ring. False if there is none.
    fn take(&mut self, block: &mut Block) -> io::Result<bool> {
        let form = self.capture.form();
        let full = &mut self.full;
        let got = self.capture.read(|frame| {
            *full += u64::from(!frames::push(block, form, frame));
        });
        let mut stats = self.capture.look();
        stats.unreadable += self.full;
        self.meter.note(stats);
        if let Some(record) = block.records().last() {
            self.meter.advance(record.time_ns);
        }
        if let Some(save) = &mut self.save {
            save.block(block)?;
        }
        Ok(got)
    }

    /// Waits for frames. False if there will be none.
    fn wait(&mut self) -> io::Result<Next> {
        let now = Instant::now();
        if let Phase::Draining(until, fault) = &mut self.phase {
            if now < *until {
                self.stop.wait_for(&self.capture, *until - now, false)?;
                return Ok(Next::Look);
            }
            let fault = fault.take();
            if let Some(save) = self.save.take() {
                save.finish()?;
            }
            return match fault {
                Some(fault) => Err(io::Error::other(fault)),
                None => Ok(Next::Over),
            };
        }
        let left = self.end.map(|end| end.saturating_duration_since(now));
        if left == Some(Duration::ZERO) || trace::capture::Stop::is_set(&*self.stop) {
            self.capture.stop()?;
            self.phase = Phase::Draining(now + HOLD, None);
            return Ok(Next::Look);
        }
        let wait = left.map_or(WAIT, |left| left.min(WAIT));
        match self.stop.wait_for(&self.capture, wait, true)? {
            Woken::Ready => {}
            Woken::Fault => {
                if let Err(fault) = self.capture.check() {
                    self.phase = Phase::Draining(now + HOLD, Some(fault));
                }
            }
            Woken::Signal => {}
            Woken::Late => {
                self.meter.advance(wall() - HOLD.as_nanos() as i64);
                return Ok(Next::Turn);
            }
        }
        Ok(Next::Look)
    }
}

/// What to do after waiting.
enum Next {
    /// Look for a block.
    Look,
    /// Let others do timed work.
    Turn,
    /// The capture is over.
    Over,
}

impl trace::capture::Source for Interface {
    fn read(&mut self, block: &mut Block) -> io::Result<bool> {
        block.clear();
        loop {
            if self.take(block)? {
                if block.is_empty() {
                    continue;
                }
                return Ok(true);
            }
            match self.wait()? {
                Next::Look => {}
                Next::Turn => return Ok(true),
                Next::Over => return Ok(false),
            }
        }
    }
}

/// `--write`: the frames as captured, in a pcap file.
struct Save {
    path: PathBuf,
    out: PcapWriter<BufWriter<File>>,
    /// Frames that pcap cannot hold.
    left_out: u64,
}

impl Save {
    fn new(path: PathBuf, capture: &Capture) -> Result<Save> {
        let out = File::create(&path).and_then(|file| {
            let out = BufWriter::with_capacity(1 << 18, file);
            PcapWriter::new(out, frames::link(capture.form()), Resolution::Nanos)
        });
        let out = out.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Save {
            path,
            out,
            left_out: 0,
        })
    }

    fn fault(&self, error: &io::Error) -> io::Error {
        let text = format!("cannot write {}: {error}", self.path.display());
        io::Error::new(error.kind(), text)
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        for record in block.records() {
            let bytes = block.bytes(record);
            match self.out.write(record.time_ns, record.length, bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.left_out += 1,
                Err(error) => return Err(self.fault(&error)),
            }
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        if self.left_out > 0 {
            let (path, count) = (self.path.display(), self.left_out);
            eprintln!("headend: {path}: {count} frames are too long for pcap and were left out");
        }
        let path = self.path.display().to_string();
        let wrote = self.out.into_inner().flush();
        wrote.map_err(|error| io::Error::new(error.kind(), format!("cannot write {path}: {error}")))
    }
}
