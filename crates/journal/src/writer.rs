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
