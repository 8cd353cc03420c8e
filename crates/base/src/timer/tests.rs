//! All stores against one model: a vector of timers that is searched.

use proptest::prelude::*;

use super::*;
use crate::Duration;

const TICKS_NS: [u64; 3] = [1, 1_000_000, 10_000_000];
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn stores(tick: Duration) -> [AnyTimers; 3] {
    TimerKind::ALL.map(|kind| AnyTimers::new(kind, tick))
}

fn tokens_due(timers: &mut impl TimerStore, now: Instant) -> Vec<u32> {
    core::iter::from_fn(|| timers.pop_due(now))
        .map(|expired| expired.token)
        .collect()
}

#[test]
fn timers_fire_by_deadline_then_in_the_order_of_arming() {
    for mut timers in stores(Duration::from_millis(1)) {
        for (token, at) in [(0, 30), (1, 10), (2, 70_000), (3, 10), (4, 0), (5, 70_000)] {
            timers.insert(ms(at), token);
        }
        assert_eq!(tokens_due(&mut timers, ms(9)), [4]);
        assert_eq!(tokens_due(&mut timers, ms(10)), [1, 3]);
        timers.insert(ms(30), 6);
        assert_eq!(tokens_due(&mut timers, ms(100_000)), [0, 6, 2, 5]);
        assert!(timers.is_empty());
    }
}

#[test]
fn a_stale_id_is_refused_after_its_slot_was_used_again() {
    for mut timers in stores(Duration::from_millis(1)) {
        let fired = timers.insert(ms(1), 1);
        assert_eq!(tokens_due(&mut timers, ms(1)), [1]);
        assert!(!timers.cancel(fired));
        let cancelled = timers.insert(ms(2), 2);
        assert!(timers.cancel(cancelled));
        assert!(!timers.cancel(cancelled));
        let armed = timers.insert(ms(3), 3);
        assert!(!timers.cancel(fired));
        assert!(!timers.cancel(cancelled));
        assert_eq!(timers.len(), 1);
        assert!(timers.cancel(armed));
    }
}

#[test]
fn a_deadline_in_the_past_is_due_at_once() {
    for mut timers in stores(Duration::from_millis(10)) {
        timers.insert(ms(5_000), 0);
        assert_eq!(tokens_due(&mut timers, ms(6_000)), [0]);
        timers.insert(ms(1), 1);
        timers.insert(Instant::ZERO, 2);
        assert!(timers.next_deadline() <= Some(ms(6_000)));
        assert_eq!(tokens_due(&mut timers, ms(6_000)).len(), 2);
    }
}

#[test]
fn the_far_future_comes_at_the_end_of_time_only() {
    for tick_ns in TICKS_NS {
        for mut timers in stores(Duration::from_nanos(tick_ns)) {
            timers.insert(Instant::from_nanos(u64::MAX - 1), 0);
            timers.insert(Instant::FAR_FUTURE, 1);
            assert!(timers.next_deadline() >= Some(Instant::from_nanos(u64::MAX - 1)));
            assert_eq!(
                tokens_due(&mut timers, Instant::from_nanos(u64::MAX - 2)),
                []
            );
            assert_eq!(tokens_due(&mut timers, Instant::FAR_FUTURE), [0, 1]);
            timers.insert(Instant::ZERO, 2);
            assert_eq!(tokens_due(&mut timers, Instant::FAR_FUTURE), [2]);
        }
    }
}

#[test]
fn a_wheel_of_tick_zero_counts_nanoseconds() {
    let mut wheel = Wheel::new(Duration::ZERO);
    assert_eq!(wheel.tick(), Duration::from_nanos(1));
    wheel.insert(Instant::from_nanos(7), 7);
    assert_eq!(wheel.next_deadline(), Some(Instant::from_nanos(7)));
}

#[test]
fn a_wheel_tells_the_exact_tick_of_a_timer_far_ahead() {
    let mut wheel = Wheel::new(Duration::from_millis(1));
    let far = Instant::from_nanos((Instant::ZERO + YEAR).as_nanos() + 1);
    wheel.insert(far, 1);
    let next = wheel.next_deadline().unwrap();
    assert_eq!(next, Instant::ZERO + YEAR + Duration::from_millis(1));
    assert_eq!(wheel.pop_due(Instant::ZERO + YEAR), None);
    assert_eq!(wheel.pop_due(next), Some(Expired { token: 1, at: far }));
}

#[test]
fn a_wheel_tells_the_exact_tick_after_the_earliest_of_a_few_was_cancelled() {
    let mut wheel = Wheel::new(Duration::from_millis(1));
    let ids: Vec<TimerId> = (0..20).map(|n| wheel.insert(ms(100_000 + n), 0)).collect();
    for (id, n) in ids.into_iter().zip(0..) {
        assert_eq!(wheel.next_deadline(), Some(ms(100_000 + n)));
        assert!(wheel.cancel(id));
    }
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn a_wheel_is_on_time_after_the_earliest_of_a_crowd_was_cancelled() {
    let mut wheel = Wheel::new(Duration::from_millis(1));
    let earliest = wheel.insert(ms(100_000), 0);
    for _ in 0..100 {
        wheel.insert(ms(100_500), 1);
    }
    wheel.insert(ms(100_100), 2);
    assert!(wheel.cancel(earliest));
    assert_eq!(wheel.next_deadline(), Some(ms(100_000)));
    assert_eq!(wheel.pop_due(ms(100_000)), None);
    assert_eq!(wheel.next_deadline(), Some(ms(100_100)));
    assert_eq!(tokens_due(&mut wheel, ms(100_100)), [2]);
}

#[test]
fn an_earlier_now_changes_nothing() {
    for mut timers in stores(Duration::from_millis(1)) {
        assert_eq!(tokens_due(&mut timers, ms(9_000)), []);
        timers.insert(ms(9_010), 0);
        assert_eq!(tokens_due(&mut timers, ms(1)), []);
        timers.insert(ms(9_005), 1);
        assert_eq!(timers.next_deadline(), Some(ms(9_005)));
        assert_eq!(tokens_due(&mut timers, ms(9_004)), []);
        assert_eq!(tokens_due(&mut timers, ms(9_005)), [1]);
        assert_eq!(tokens_due(&mut timers, ms(9_010)), [0]);
    }
}

#[test]
fn a_wheel_wakes_up_at_most_ten_times_for_nothing() {
    let mut wheel = Wheel::new(Duration::from_nanos(1));
    let last = Instant::from_nanos(u64::MAX / 2);
    // Crowds of timers before the last one, in every level: their cancelling leaves
    // only lower bounds behind.
    let mut ids = Vec::new();
    for level in 0..63 {
        for n in 0..1_000 {
            ids.push(wheel.insert(Instant::from_nanos(last.as_nanos() - (n << level >> 10)), 1));
        }
    }
    wheel.insert(last, 2);
    let mut wakes = 0;
    for id in ids {
        assert!(wheel.cancel(id));
    }
    loop {
        let now = wheel.next_deadline().unwrap();
        assert!(now <= last);
        if let Some(expired) = wheel.pop_due(now) {
            assert_eq!(expired, Expired { token: 2, at: last });
            break;
        }
        wakes += 1;
    }
    assert!(wakes <= 10, "{wakes} wake-ups");
}

#[test]
fn a_wheel_uses_the_memory_of_fired_timers_again() {
    let mut timers = Wheel::new(Duration::from_millis(1));
    let mut slots = std::collections::HashSet::new();
    for n in 0..100_000 {
        slots.insert(timers.insert(ms(n + 50), 0).slot);
        timers.pop_due(ms(n));
    }
    assert!(slots.len() <= 51, "{} slots", slots.len());
}

#[test]
fn kinds_are_read_as_they_are_written() {
    for kind in TimerKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(AnyTimers::new(kind, Duration::ZERO).kind(), kind);
    }
    assert_eq!("Wheel".parse::<TimerKind>(), Err(UnknownTimerKind));
}

#[derive(Clone, Debug)]
enum Op {
    /// Arms a timer so many nanoseconds after now, or before.
    Insert { offset_ns: i128 },
    /// Cancels a timer: one of those ever armed, counted from the latest.
    Cancel { back: usize },
    /// Lets time pass, with a stop at each next deadline.
    Advance { ns: u64 },
    /// Lets time pass without a stop.
    Jump { ns: u64 },
}

fn span_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => 0..1_000_u64,
        30 => 0..100_000_000_u64,
        30 => 0..60_000_000_000_u64,
        5 => 0..=YEAR.as_nanos(),
        1 => any::<u64>(),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let ahead = span_ns().prop_map(|ns| Op::Insert {
        offset_ns: i128::from(ns),
    });
    let behind = span_ns().prop_map(|ns| Op::Insert {
        offset_ns: -i128::from(ns),
    });
    let near = (0..40_u64).prop_map(|n| Op::Insert {
        offset_ns: 5_000_000_000 + i128::from(n),
    });
    prop_oneof![
        30 => ahead,
        10 => near,
        3 => behind,
        20 => (0..40_usize).prop_map(|back| Op::Cancel { back }),
        10 => span_ns().prop_map(|ns| Op::Advance { ns }),
        3 => span_ns().prop_map(|ns| Op::Jump { ns }),
    ]
}

struct Timer {
    at: Instant,
    id: TimerId,
    armed: bool,
    past: bool,
}

/// A store and what it should hold; a timer's token is its place in `model`.
struct Checked {
    store: AnyTimers,
    tick_ns: u64,
    now: Instant,
    model: Vec<Timer>,
}

impl Checked {
    fn round_up(&self, at: Instant) -> Instant {
        Instant::from_nanos(
            at.as_nanos()
                .div_ceil(self.tick_ns)
                .saturating_mul(self.tick_ns),
        )
    }

    fn armed(&self) -> usize {
        self.model.iter().filter(|timer| timer.armed).count()
    }

    fn insert(&mut self, offset_ns: i128) {
        let at_ns = (i128::from(self.now.as_nanos()) + offset_ns).clamp(0, u64::MAX.into());
        let at = Instant::from_nanos(at_ns as u64);
        let id = self.store.insert(at, self.model.len() as u32);
        self.model.push(Timer {
            at,
            id,
            armed: true,
            past: at <= self.now,
        });
    }

    fn cancel(&mut self, back: usize) {
        let Some(place) = self.model.len().checked_sub(1 + back) else {
            return;
        };
        let timer = &mut self.model[place];
        let was_armed = core::mem::replace(&mut timer.armed, false);
        assert_eq!(self.store.cancel(timer.id), was_armed);
    }

    fn check_next_deadline(&self) {
        let armed = self.model.iter().filter(|timer| timer.armed);
        let exact = armed.map(|timer| self.round_up(timer.at)).min();
        let told = self.store.next_deadline();
        assert_eq!(told.is_some(), exact.is_some());
        let (Some(told), Some(exact)) = (told, exact) else {
            return;
        };
        if exact <= self.now {
            assert!(told <= self.now, "due, but told to wait");
        } else if self.store.kind() == TimerKind::Wheel && self.model.len() > 32 {
            assert!(told <= exact, "told to wait too long");
        } else {
            assert_eq!(told, exact);
        }
    }

    /// Fires what is due and compares it with what should be.
    fn fire(&mut self, now: Instant) {
        self.now = now;
        let fired: Vec<Expired> = core::iter::from_fn(|| self.store.pop_due(now)).collect();
        let mut last = (Instant::ZERO, 0);
        for expired in fired {
            let timer = &mut self.model[expired.token as usize];
            assert_eq!(expired.at, timer.at);
            assert!(expired.at <= now, "early");
            assert!(
                core::mem::replace(&mut timer.armed, false),
                "fired twice or after cancelling"
            );
            if !timer.past {
                let key = (self.round_up(expired.at), expired.token);
                assert!(last < key || key == (Instant::ZERO, 0), "out of order");
                last = key;
            }
        }
        let late = self
            .model
            .iter()
            .find(|t| t.armed && self.round_up(t.at) <= now);
        assert!(late.is_none(), "not fired in its tick");
        assert_eq!(self.store.len(), self.armed());
    }

    fn advance(&mut self, ns: u64) {
        let until = self.now + Duration::from_nanos(ns);
        let mut idle_wakes = 0;
        while let Some(next) = self.store.next_deadline().filter(|&next| next <= until) {
            let before = self.store.len();
            self.fire(next.max(self.now));
            idle_wakes += usize::from(self.store.len() == before);
            self.check_next_deadline();
        }
        assert!(idle_wakes <= 10 * self.model.len());
        self.fire(until);
    }

    fn run(&mut self, ops: &[Op]) {
        for op in ops {
            match *op {
                Op::Insert { offset_ns } => self.insert(offset_ns),
                Op::Cancel { back } => self.cancel(back),
                Op::Advance { ns } => self.advance(ns),
                Op::Jump { ns } => self.fire(self.now + Duration::from_nanos(ns)),
            }
            self.check_next_deadline();
            assert_eq!(self.store.len(), self.armed());
        }
        self.advance(u64::MAX);
        assert!(self.store.is_empty());
    }
}

proptest! {
    #[test]
    fn every_store_fires_what_the_model_fires(
        ops in prop::collection::vec(op(), 0..400),
        start_ns in span_ns(),
    ) {
        for tick_ns in TICKS_NS {
            for store in stores(Duration::from_nanos(tick_ns)) {
                let tick_ns = if store.kind() == TimerKind::Wheel { tick_ns } else { 1 };
                let now = Instant::from_nanos(start_ns);
                Checked { store, tick_ns, now, model: Vec::new() }.run(&ops);
            }
        }
    }
}
