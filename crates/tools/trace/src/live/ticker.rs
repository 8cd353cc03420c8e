//! What senders waited for in each interval of a capture that runs.
//!
//! The work for an interval grows with the connections that had packets in it, or that have data in flight, and not with
//! the others. Intervals are those of the capture's clock, so that a burst that is analysed late counts when it passed.

use std::collections::HashMap;
use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use cli::screen::Screen;
use reactor::capture::{Capture, CaptureStats};
use trace::why::{Interval, Mark, Moment};
use trace::{Analyzer, Connection, Finished};

use super::learning::Learning;
use super::processes::{Ends, Processes};
use super::source::Meter;
use super::{EVERY, lines, text};
use crate::hi::HiArgs;
use crate::owners::{Learnt, Owner};
use crate::report::Paper;

/// Connections that a report lists.
const WORST: usize = 10;

/// Connections whose times are kept from one interval to the next. Beyond it, those without packets in the last interval
/// are forgotten.
const KNOWN_MAX: usize = 65_536;

/// Connections whose sockets are looked up in one interval.
const LOOKUPS_MAX: usize = 1_000;

/// A connection that has been seen in an earlier interval.
#[derive(Clone, Copy)]
struct Known {
    mark: Mark,
    /// `None` until its sockets have been looked up.
    ends: Option<Ends>,
}

/// A connection of the report.
pub(super) struct Slow {
    pub(super) first_packet: u64,
    pub(super) a: (IpAddr, u16),
    pub(super) b: (IpAddr, u16),
    /// The direction that explains it.
    pub(super) interval: Interval,
    ends: Ends,
    pub(super) a_owner: Option<Owner>,
    pub(super) b_owner: Option<Owner>,
}

/// The report of an interval.
pub(super) struct Report {
    pub(super) interface: String,
    /// In nanoseconds since 1970.
    pub(super) from: i64,
    pub(super) until: i64,
    /// Frames of the interval, and those that the kernel dropped in it.
    pub(super) captured: u64,
    pub(super) dropped: u64,
    /// The kernel's drops since the start.
    pub(super) dropped_total: u64,
    /// Connections with packets or with data in flight.
    pub(super) connections: u64,
    /// The worst first.
    pub(super) worst: Vec<Slow>,
}

/// Reports at intervals.
pub(in super::super) struct Ticker {
    meter: Arc<Meter>,
    name: String,
    every: i64,
    /// When the present interval began, and the counts then.
    from: i64,
    before: CaptureStats,
    known: HashMap<u64, Known>,
    processes: Option<Processes>,
    learning: Learning,
    /// Reports, and does not only learn the processes of connections.
    reports: bool,
    json: bool,
    screen: Screen,
}

impl Ticker {
    /// For a capture that began at `from`, in nanoseconds since 1970.
    pub(super) fn new(args: &HiArgs, capture: &Capture, from: i64, meter: Arc<Meter>) -> Ticker {
        Ticker {
            meter,
            name: capture.name().to_owned(),
            every: args.low.every.unwrap_or(EVERY),
            from,
            before: CaptureStats::default(),
            known: HashMap::new(),
            processes: Processes::new(capture.index()),
            learning: Learning::default(),
            reports: args.low.why,
            json: args.low.json,
            screen: Screen::new(),
        }
    }

    /// Reports the interval if it is over.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(in super::super) fn look<W: Write>(
        &mut self,
        analyzer: &mut Analyzer,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let clock = self.meter.clock();
        if clock < self.from.saturating_add(self.every) {
            return Ok(());
        }
        if !self.reports {
            self.learn(analyzer);
            self.from = clock;
            return Ok(());
        }
        let report = self.report(analyzer, clock);
        if self.json {
            lines::write(&report, paper.text());
            paper.flush()?;
        } else {
            let text = text::page(&report);
            paper.flush()?;
            self.screen.show(&text)?;
        }
        self.from = clock;
        Ok(())
    }

    /// Whether it reports, and does not only learn the processes of connections.
    pub(in super::super) const fn reports(&self) -> bool {
        self.reports
    }

    /// Connections have left the analyser. Of those that are still open, as at the end of the capture, the sockets are
    /// looked up.
    ///
    /// # Errors
    /// A connection cannot be read.
    pub(in super::super) fn forget(&mut self, finished: &[Finished]) -> Result<()> {
        let mut lookups = LOOKUPS_MAX;
        let mut connection = Connection::default();
        for finished in finished {
            let key = finished.first_packet;
            let known = self.known.remove(&key).and_then(|known| known.ends);
            let is_known = known.is_some() || self.learning.has(key);
            let Some(processes) = self.processes.as_mut().filter(|_| !is_known && lookups > 0)
            else {
                continue;
            };
            lookups -= 1;
            connection.thaw(&finished.octets)?;
            let ends = processes.ends(connection.a_end(), connection.b_end());
            self.learning.add(key, ends);
        }
        Ok(())
    }

    /// The processes of all connections, as far as they are known.
    pub(in super::super) fn into_learnt(mut self) -> Learnt {
        if let Some(processes) = &mut self.processes {
            processes.search();
            self.learning.settle(processes, true);
        }
        self.learning.learnt
    }

    /// Looks up the sockets of connections that had packets, each until they are found.
    fn learn(&mut self, analyzer: &mut Analyzer) {
        let Some(processes) = &mut self.processes else {
            return;
        };
        let (learning, mut lookups) = (&mut self.learning, LOOKUPS_MAX);
        analyzer.recent(|connection| {
            let key = connection.first_packet;
            if lookups > 0 && !learning.has(key) {
                lookups -= 1;
                let ends = processes.ends(connection.a_end(), connection.b_end());
                learning.add(key, ends);
            }
            false
        });
        processes.search();
        learning.settle(processes, false);
    }

    fn report(&mut self, analyzer: &mut Analyzer, until: i64) -> Report {
        let (mut worst, mut connections) = (Vec::new(), 0);
        let mut lookups = LOOKUPS_MAX;
        if self.known.len() >= KNOWN_MAX {
            let from = self.from;
            self.known.retain(|_, known| known.mark.until >= from);
        }
        analyzer.recent(|connection| {
            connections += 1;
            self.one(connection, until, &mut lookups, &mut worst)
        });
        if let Some(processes) = &mut self.processes {
            processes.search();
            for slow in &mut worst {
                slow.a_owner = processes.owner(slow.ends.a);
                slow.b_owner = processes.owner(slow.ends.b);
            }
            self.learning.settle(processes, false);
        }
        let (now, before) = (self.meter.stats(), self.before);
        self.before = now;
        Report {
            interface: self.name.clone(),
            from: self.from,
            until,
            captured: now.captured - before.captured,
            dropped: now.dropped - before.dropped,
            dropped_total: now.dropped,
            connections,
            worst,
        }
    }

    /// Adds a connection to the worst, if it is one of them. Returns whether to look at it in the next interval even if it
    /// has no packets.
    fn one(
        &mut self,
        connection: &Connection,
        until: i64,
        lookups: &mut usize,
        worst: &mut Vec<Slow>,
    ) -> bool {
        let Some(moment) = Moment::new(connection, until) else {
            return false;
        };
        let (key, mark) = (connection.first_packet, moment.mark());
        let known = self.known.get(&key).copied();
        let (a, b) = (connection.a_end(), connection.b_end());
        let mut ends = known.and_then(|known| known.ends);
        if ends.is_none()
            && *lookups > 0
            && let Some(processes) = &mut self.processes
        {
            *lookups -= 1;
            let found = processes.ends(a, b);
            self.learning.add(key, found);
            ends = Some(found);
        }
        if known.is_some() || self.known.len() < KNOWN_MAX {
            self.known.insert(key, Known { mark, ends });
        }
        let before = known.map(|known| known.mark);
        let sides = [true, false].map(|from_a| moment.since(before.as_ref(), self.from, from_a));
        let main = sides.into_iter().flatten().max_by_key(rank);
        if let Some(interval) = main
            && (interval.bytes > 0 || interval.lost() > 0)
        {
            let slow = Slow {
                first_packet: key,
                a,
                b,
                interval,
                ends: ends.unwrap_or_default(),
                a_owner: None,
                b_owner: None,
            };
            insert(worst, slow);
        }
        moment.is_waiting()
    }
}

/// Time lost to something other than the ends' own work, then data.
fn rank(interval: &Interval) -> (i64, u64) {
    (interval.lost(), interval.bytes)
}

/// Inserts a connection in order, if it is one of the worst.
fn insert(worst: &mut Vec<Slow>, slow: Slow) {
    let at = worst.partition_point(|other| rank(&other.interval) >= rank(&slow.interval));
    if at < WORST {
        worst.insert(at, slow);
        worst.truncate(WORST);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use trace::why::{CAUSES, Cause};

    use super::*;
    use crate::owners::Process;

    /// A connection that waited for a queue for so many milliseconds of a second.
    pub(in crate::live) fn slow(port: u16, lost: i64, bytes: u64) -> Slow {
        let mut times = [0; CAUSES];
        times[Cause::Queue as usize] = lost * 1_000_000;
        times[Cause::Application as usize] = 1_000_000_000 - lost * 1_000_000;
        Slow {
            first_packet: u64::from(port),
            a: ("192.0.2.1".parse().unwrap(), port),
            b: ("2001:db8::1".parse().unwrap(), 443),
            interval: Interval {
                from_a: false,
                span: 1_000_000_000,
                times,
                bytes,
                retransmitted: 2,
                cause: Cause::Queue,
                detail: None,
                is_silent: false,
            },
            ends: Ends::default(),
            a_owner: Some(Owner {
                uid: 1000,
                process: None,
            }),
            b_owner: Some(Owner {
                uid: 0,
                process: Some(Process {
                    pid: 42,
                    name: "server".to_owned(),
                }),
            }),
        }
    }

    pub(in crate::live) fn report(worst: Vec<Slow>) -> Report {
        Report {
            interface: "eth0".to_owned(),
            from: 1_700_000_000_000_000_000,
            until: 1_700_000_005_000_000_000,
            captured: 1_234,
            dropped: 5,
            dropped_total: 7,
            connections: 30,
            worst,
        }
    }

    #[test]
    fn the_ten_that_waited_longest_are_kept_in_order() {
        let mut worst = Vec::new();
        for port in 0..100_u16 {
            insert(&mut worst, slow(port, i64::from(port * 37 % 101), 0));
        }
        let lost: Vec<i64> = worst
            .iter()
            .map(|slow| slow.interval.lost() / 1_000_000)
            .collect();
        assert_eq!(lost.len(), WORST);
        assert!(
            lost.is_sorted_by(|one, next| one >= next) && lost[0] == 100,
            "{lost:?}"
        );
        // Among equals, data decides.
        let mut worst = Vec::new();
        for bytes in [5, 9, 7] {
            insert(&mut worst, slow(1, 0, bytes));
        }
        assert_eq!(
            worst
                .iter()
                .map(|slow| slow.interval.bytes)
                .collect::<Vec<_>>(),
            [9, 7, 5]
        );
    }
}
