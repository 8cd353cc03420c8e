//! When to write, to sync and to compact; without a thread and without a clock.

use std::io;

use base::{Disk, Duration, Instant};

use crate::{Batch, Log, Moment, Options};

/// A log, and when something is due.
pub(crate) struct Writer<D: Disk> {
    pub(crate) log: Log<D>,
    options: Options,
    /// When the oldest bytes that are not on the disk were added.
    unsynced_since: Option<Instant>,
    /// When the last group was added.
    spoke_at: Instant,
    /// After a failure: when to try again, and how long to wait after the next one.
    retry: Option<(Instant, Duration)>,
}

impl<D: Disk> Writer<D> {
    pub(crate) fn new(log: Log<D>, options: Options, now: Instant) -> Self {
        Self {
            log,
            options,
            unsynced_since: None,
            spoke_at: now,
            retry: None,
        }
    }

    /// When the next turn is due, even without entries.
    pub(crate) fn due(&self) -> Instant {
        if let Some((at, _)) = self.retry {
            return at;
        }
        if self.log.wants_step() {
            return Instant::ZERO;
        }
        match self.unsynced_since {
            Some(since) => since + self.options.commit_interval,
            None => self.spoke_at + self.options.mark_interval,
        }
    }

    /// Takes a batch over, and does what is due. With `hurry`, everything is on the disk then.
    ///
    /// # Errors
    /// The disk's error. It is tried again later.
    pub(crate) fn turn(&mut self, batch: &mut Batch, now: Moment, hurry: bool) -> io::Result<()> {
        let mark_at = self.spoke_at + self.options.mark_interval;
        if !batch.is_empty() {
            self.log.add(batch, now);
            self.spoke(now);
        } else if self.unsynced_since.is_none() && now.clock >= mark_at {
            self.log.add_mark(now);
            self.spoke(now);
        }
        let rest = match self.retry {
            Some((at, _)) if now.clock < at && !hurry => return Ok(()),
            Some((_, rest)) => rest,
            None => self.options.retry,
        };
        let done = self.work(now, hurry);
        self.retry = done.is_err().then(|| {
            let longer = rest.saturating_mul(2).min(self.options.retry_max);
            (now.clock + rest, longer)
        });
        done
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.retry.is_some()
    }

    fn spoke(&mut self, now: Moment) {
        self.spoke_at = now.clock;
        self.unsynced_since.get_or_insert(now.clock);
    }

    fn work(&mut self, now: Moment, hurry: bool) -> io::Result<()> {
        self.log.write()?;
        let interval = self.options.commit_interval;
        let since = self.unsynced_since;
        if since.is_some_and(|since| hurry || now.clock >= since + interval) {
            self.log.sync()?;
            self.unsynced_since = None;
        }
        self.log.step(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Limits};
    use sim::CrashDisk;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Moment {
        Moment {
            clock: Instant::from_nanos(ms * MS),
            wall_ns: ms * MS,
        }
    }

    fn writer(disk: &CrashDisk) -> Writer<CrashDisk> {
        let (host, limits) = (Host::default(), Limits::default());
        let (log, _) = Log::open(disk.clone(), host, limits, b"", at(1)).unwrap();
        Writer::new(log, Options::default(), at(1).clock)
    }

    fn batch() -> Batch {
        let mut batch = Batch::default();
        assert!(batch.put(1, 1, &[(0, b"value")]));
        batch
    }

    #[test]
    fn entries_are_written_at_once_and_synced_when_the_first_one_is_due() {
        let mut writer = writer(&CrashDisk::new(0));
        assert_eq!(writer.due(), at(10_001).clock, "a mark");
        for (ms, synced) in [(50, 0), (149, 0), (150, 3), (151, 3)] {
            writer.turn(&mut batch(), at(ms), false).unwrap();
            assert_eq!(writer.log.written(), writer.log.last());
            assert_eq!(writer.log.synced(), synced, "at {ms} ms");
        }
        assert_eq!(writer.due(), at(251).clock);
        writer.turn(&mut Batch::default(), at(251), false).unwrap();
        assert!(writer.log.is_synced());
    }

    #[test]
    fn a_disk_that_fails_is_tried_again_less_and_less_often() {
        let disk = CrashDisk::new(0);
        let mut writer = writer(&disk);
        disk.set_room(0);
        assert!(writer.turn(&mut batch(), at(1_000), false).is_err());
        let mut now = 1_000;
        for rest in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            assert_eq!(writer.due(), at(now + rest).clock);
            // Entries that come meanwhile do not call the disk.
            writer
                .turn(&mut batch(), at(now + rest - 1), false)
                .unwrap();
            assert!(writer.is_failing());
            now += rest;
            assert!(writer.turn(&mut Batch::default(), at(now), false).is_err());
        }
        disk.set_room(u64::MAX);
        writer
            .turn(&mut Batch::default(), at(now + 1), true)
            .unwrap();
        assert!(!writer.is_failing() && writer.log.is_synced());
        assert_eq!(writer.log.last(), 10);
    }
}
