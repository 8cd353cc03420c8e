//! KEEPALIVEs by phase: all sessions with one interval are on a ring, each at its phase of a turn.
//!
//! An idle session arms no timer. The ring has one next visit, and a visit touches the hot records of the sessions at
//! that phase. A session that sent an UPDATE is not visited earlier, but is moved when its old phase comes (RFC 4271,
//! section 8.2.2: the KeepaliveTimer restarts with each UPDATE).
//!
//! Jitter (section 10): each turn takes 0.75 to 1 times the interval, but at least one second, the minimum between
//! KEEPALIVEs in section 4.4. The first KEEPALIVE of a session is up to a quarter of a turn late, so that sessions that came up
//! together spread. Connections that are neighbours in the table share a phase, because a visit then reads their
//! records in order; with a random phase for each, the processor would wait for memory each time.

use base::{Duration, Instant};

use crate::random::Random;
use crate::table::ConnId;

/// Phases of a turn.
pub(crate) const PHASES: u32 = 64;
/// The first KEEPALIVE is late by less than this number of phases.
const LATE: u32 = PHASES / 4;
/// This many neighbouring connections share a phase.
const TOGETHER: u32 = 32;
/// The minimum time between KEEPALIVEs of a session.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// A session on the ring.
#[derive(Clone, Copy, Debug)]
struct Entry {
    phase: u32,
    conn: ConnId,
}

/// What happens to a session after a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It keeps its phase.
    Here,
    /// It moves to another phase.
    At(u32),
    /// It leaves the ring.
    Leaves,
}

/// All sessions with one interval.
#[derive(Debug)]
pub(crate) struct Ring {
    interval: Duration,
    /// By phase.
    entries: Vec<Entry>,
    /// The next phase to visit in this turn.
    cursor: usize,
    turn: u32,
    start: Instant,
    period: Duration,
    /// The length of the last turn, until this turn starts.
    period_before: Duration,
    /// How late the first connections of the table are, in phases. Each ring has its own value.
    offset: u32,
}

impl Ring {
    pub(crate) fn new(interval: Duration, now: Instant, random: &mut Random) -> Self {
        let period = random.jitter(interval).max(INTERVAL_MIN);
        Self {
            interval,
            entries: Vec::new(),
            cursor: 0,
            turn: 0,
            start: now,
            period,
            period_before: period,
            offset: random.below(u64::from(LATE)) as u32,
        }
    }

    /// The longest time between two visits of a session.
    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tick that `now` falls into.
    pub(crate) fn tick(&self, now: Instant) -> u32 {
        let base = self.turn.wrapping_mul(PHASES);
        if now >= self.start {
            base.wrapping_add(phases(now - self.start, self.period) as u32)
        } else {
            let before = phases(self.start - now, self.period_before) as u32;
            base.wrapping_sub(before.saturating_add(1))
        }
    }

    /// Adds a session that sent its first KEEPALIVE at `now`. Returns the tick of that KEEPALIVE.
    pub(crate) fn insert(&mut self, conn: ConnId, now: Instant) -> u32 {
        if self.entries.is_empty() {
            self.start = now;
            self.cursor = 0;
        }
        let late = (self.offset + conn.index() / TOGETHER) % LATE;
        let sent = self.tick(now).wrapping_add(1 + late);
        self.place(conn, sent % PHASES);
        sent
    }

    fn place(&mut self, conn: ConnId, phase: u32) {
        let at = self.entries.partition_point(|entry| entry.phase <= phase);
        crate::table::reserve_some(&mut self.entries);
        self.entries.insert(at, Entry { phase, conn });
        if at < self.cursor {
            self.cursor += 1;
        }
    }

    /// When the next session is to be visited.
    pub(crate) fn next_visit(&self) -> Option<Instant> {
        let entry = self.entries.get(self.cursor)?;
        let into = self.period.as_nanos() / u64::from(PHASES) * u64::from(entry.phase);
        Some(self.start + Duration::from_nanos(into))
    }

    /// The tick whose sessions are to be visited at `now`, if one is due: turns and phases since the ring was made,
    /// wrapping. [`Ring::visit`] visits them.
    pub(crate) fn due(&self, now: Instant) -> Option<u32> {
        if self.next_visit()? > now {
            return None;
        }
        let phase = self.entries[self.cursor].phase;
        Some(self.turn.wrapping_mul(PHASES).wrapping_add(phase))
    }

    /// Visits every session of the due tick. The loop is tight, so that the processor loads the records of many
    /// sessions at once.
    pub(crate) fn visit(
        &mut self,
        now: Instant,
        random: &mut Random,
        mut look: impl FnMut(ConnId) -> Stay,
    ) {
        let Some(phase) = self.entries.get(self.cursor).map(|entry| entry.phase) else {
            return;
        };
        let mut at = self.cursor;
        let mut moved = Vec::new();
        while let Some(entry) = self.entries.get(at).filter(|entry| entry.phase == phase) {
            match look(entry.conn) {
                Stay::Here => at += 1,
                Stay::Leaves => {
                    self.entries.remove(at);
                }
                Stay::At(phase) => {
                    moved.push((self.entries.remove(at).conn, phase % PHASES));
                }
            }
        }
        self.cursor = at;
        for (conn, phase) in moved {
            self.place(conn, phase);
        }
        if self.cursor >= self.entries.len() {
            self.turn_over(now, random);
        }
    }

    fn turn_over(&mut self, now: Instant, random: &mut Random) {
        self.cursor = 0;
        self.turn = self.turn.wrapping_add(1);
        self.period_before = self.period;
        self.start += self.period;
        // After a delay of a whole turn the ring continues from now, so that no session gets two KEEPALIVEs at once.
        if self.start + self.period < now {
            self.start = now;
        }
        self.period = random.jitter(self.interval).max(INTERVAL_MIN);
    }
}

/// How many phases of a turn of `period` fit into `span`.
fn phases(span: Duration, period: Duration) -> u64 {
    span.as_nanos() / (period.as_nanos() / u64::from(PHASES)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn(index: u32) -> ConnId {
        ConnId::for_tests(index)
    }

    /// Runs a ring for `s` seconds. Returns when each session was visited with a KEEPALIVE due.
    fn run(interval_s: u64, sessions: u32, s: u64, update_at: &[Duration]) -> Vec<Vec<Instant>> {
        let mut random = Random::new([3; 32]);
        let mut ring = Ring::new(Duration::from_secs(interval_s), Instant::ZERO, &mut random);
        let mut sent: Vec<u32> = (0..sessions)
            .map(|index| ring.insert(conn(index), Instant::ZERO))
            .collect();
        let mut visits = vec![Vec::new(); sessions as usize];
        let mut updates = update_at.iter().peekable();
        while let Some(now) = ring.next_visit() {
            if let Some(at) = updates.next_if(|at| Instant::ZERO + **at <= now) {
                sent[0] = ring.tick(Instant::ZERO + *at);
            }
            if now > Instant::ZERO + Duration::from_secs(s) {
                break;
            }
            let tick = ring.due(now).expect("its time has come");
            ring.visit(now, &mut random, |conn| {
                let index = conn.index() as usize;
                if tick.wrapping_sub(sent[index]) as i32 >= PHASES as i32 {
                    sent[index] = tick;
                    visits[index].push(now);
                    Stay::Here
                } else if sent[index] % PHASES == tick % PHASES {
                    Stay::Here
                } else {
                    Stay::At(sent[index])
                }
            });
        }
        visits
    }

    #[test]
    fn an_interval_of_a_second_is_kept_to_the_nanosecond() {
        for visits in run(1, 200, 60, &[]) {
            let first = visits[0] - Instant::ZERO;
            assert!(first >= Duration::from_secs(1) && first < Duration::from_millis(1_300));
            for pair in visits.windows(2) {
                assert_eq!(pair[1] - pair[0], Duration::from_secs(1));
            }
            assert!(visits.len() >= 59);
        }
    }

    #[test]
    fn sessions_that_come_up_together_spread_over_a_quarter_of_a_turn_evenly() {
        let mut by_phase = std::collections::BTreeMap::new();
        for visits in run(1, 512, 3, &[]) {
            *by_phase.entry(visits[0]).or_insert(0) += 1;
        }
        assert_eq!(by_phase.len(), LATE as usize);
        assert!(by_phase.values().all(|sessions| *sessions == TOGETHER));
    }

    #[test]
    fn longer_intervals_have_a_jitter_of_a_quarter() {
        let visits = run(30, 50, 3_600, &[]);
        let gaps: Vec<_> = visits
            .iter()
            .flat_map(|visits| visits.windows(2).map(|pair| pair[1] - pair[0]))
            .collect();
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(22_400), "{least:?}");
        assert!(*most <= Duration::from_secs(30), "{most:?}");
        assert!(*most > *least + Duration::from_secs(3));
    }

    #[test]
    fn an_update_puts_the_next_keepalive_off() {
        let updates: Vec<_> = (2..20)
            .map(|half| Duration::from_millis(half * 500))
            .collect();
        let visits = run(1, 3, 20, &updates);
        let early = Instant::ZERO + Duration::from_millis(2_500);
        let late = Instant::ZERO + Duration::from_millis(9_500);
        assert!(
            !visits[0].iter().any(|at| *at > early && *at < late),
            "{:?}",
            visits[0]
        );
        assert!(visits[0].iter().filter(|at| **at > late).count() >= 9);
        assert!(visits[1].len() >= 18);
    }

    #[test]
    fn who_comes_late_sends_no_burst() {
        let mut random = Random::new([3; 32]);
        let mut ring = Ring::new(Duration::from_secs(1), Instant::ZERO, &mut random);
        ring.insert(conn(0), Instant::ZERO);
        let late = Instant::ZERO + Duration::from_secs(100);
        let mut visits = 0;
        while ring.due(late).is_some() {
            ring.visit(late, &mut random, |_| Stay::Here);
            visits += 1;
        }
        assert!(visits <= 3, "{visits}");
        assert!(ring.next_visit().unwrap() <= late + Duration::from_secs(2));
    }
}
