//! The cost of arming, cancelling and expiring a timer in each timer store, as n grows.
//!
//! Deadlines are uniform between 1 ms and 60 s, from a seed. Every store is first filled and
//! emptied in random order, so that its memory is as after long use. The floor is the same number
//! of entries pushed to a `Vec` and popped from it.
//!
//! The sorted list's cost per insert grows with n, so the cost of filling it grows with the square.
//! A measurement ends at its time limit. If that happens while filling, some inserts are timed with
//! all n armed, and half of their mean is reported, since the average walk while filling is half as
//! long. Such a figure is marked.

use std::hint::black_box;

use base::timer::{AnyTimers, Expired, TimerId, TimerKind, TimerStore};
use base::{Duration, Instant};
use serde::Serialize;
use sim::Rng;

/// The name of the bare loop among the stores.
pub const FLOOR: &str = "floor";

const DEADLINE_MIN: Duration = Duration::from_millis(1);
const DEADLINE_MAX: Duration = Duration::from_secs(60);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of the deadlines and of the order of cancelling.
    pub seed: u64,
    /// Numbers of timers armed at once, one curve point each.
    pub sizes: Vec<usize>,
    /// The wheel's tick.
    pub tick: Duration,
    /// Time limit of one measurement (one operation of one store at one size).
    pub budget: Duration,
    /// Small sizes are repeated until this many operations were timed or the time limit is reached.
    pub operations_min: usize,
}

impl Default for Config {
    /// 100 to 1,000,000 timers, a tick of 1 ms, a second for each measurement.
    fn default() -> Self {
        Self {
            seed: 1,
            sizes: vec![100, 1_000, 10_000, 100_000, 1_000_000],
            tick: Duration::from_millis(1),
            budget: Duration::from_secs(1),
            operations_min: 200_000,
        }
    }
}

/// Results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimersReport {
    /// The seed of the run.
    pub seed: u64,
    /// The wheel's tick in nanoseconds.
    pub tick_ns: u64,
    /// One row per size, store and operation, in that order.
    pub rows: Vec<Row>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `list`, `tree`, `wheel`, or [`FLOOR`].
    pub store: &'static str,
    /// `insert`: from empty to n; `cancel`: from n to empty, in random order; `expire`: from n to
    /// empty, stopping at each deadline; `steady`: one expires and one is armed, with n armed
    /// throughout.
    pub operation: &'static str,
    /// Largest number of armed timers.
    pub n: usize,
    /// Nanoseconds per timer, a mean.
    pub ns_per_op: f64,
    /// Whether the time limit was reached before all n were armed, so that the figure is half the
    /// cost of an insert with n armed.
    pub extrapolated: bool,
}

/// Measures every store at every size; `clock` is the real one, and `on_row` is called with each
/// finished row.
pub fn run(
    config: &Config,
    clock: &mut dyn FnMut() -> Instant,
    on_row: &mut dyn FnMut(&Row),
) -> TimersReport {
    let mut rows = Vec::new();
    for &n in config.sizes.iter().filter(|&&n| n > 0) {
        let plan = Plan::new(config, n);
        let mut add = |store, operation, cost: Cost| {
            let Cost {
                ns_per_op,
                extrapolated,
            } = cost;
            let row = Row {
                store,
                operation,
                n,
                ns_per_op,
                extrapolated,
            };
            on_row(&row);
            rows.push(row);
        };
        let floor = Floor::measure(&plan, clock);
        add(FLOOR, "insert", floor.push);
        add(FLOOR, "cancel", floor.pop);
        add(FLOOR, "expire", floor.pop);
        add(FLOOR, "steady", floor.both);
        for kind in TimerKind::ALL {
            let mut bench = Bench::new(kind, config.tick, &plan, clock);
            let [insert, cancel, expire] = bench.fill_and_empty();
            add(kind.name(), "insert", insert);
            add(kind.name(), "cancel", cancel);
            add(kind.name(), "expire", expire);
            add(kind.name(), "steady", bench.steady());
        }
    }
    TimersReport {
        seed: config.seed,
        tick_ns: config.tick.as_nanos(),
        rows,
    }
}

/// The same work for every store of one size.
struct Plan {
    /// Time from arming to deadline, in the order of arming.
    spans: Vec<Duration>,
    /// Indices of `spans`, latest deadline first.
    latest_first: Vec<usize>,
    /// Indices of `spans` in random order.
    cancelling: Vec<usize>,
    budget: Duration,
    operations_min: usize,
}

impl Plan {
    fn new(config: &Config, n: usize) -> Self {
        let mut rng = Rng::stream(config.seed, &["timers"]);
        let range = DEADLINE_MAX.as_nanos() - DEADLINE_MIN.as_nanos();
        let spans: Vec<Duration> = (0..n)
            .map(|_| DEADLINE_MIN + rng.up_to(Duration::from_nanos(range)))
            .collect();
        let mut latest_first: Vec<usize> = (0..n).collect();
        latest_first.sort_unstable_by_key(|&i| core::cmp::Reverse(spans[i]));
        let mut cancelling: Vec<usize> = (0..n).collect();
        rng.shuffle(&mut cancelling);
        Self {
            spans,
            latest_first,
            cancelling,
            budget: config.budget,
            operations_min: config.operations_min,
        }
    }
}

#[derive(Clone, Copy)]
struct Cost {
    ns_per_op: f64,
    extrapolated: bool,
}

/// Number of operations, and their time.
#[derive(Clone, Copy, Default)]
struct Tally {
    operations: usize,
    time_ns: u64,
}

impl Tally {
    /// Times `work`, which returns how many operations it did.
    fn time(&mut self, clock: &mut dyn FnMut() -> Instant, work: impl FnOnce() -> usize) {
        let begin = clock();
        self.operations += work();
        self.time_ns += clock().since(begin).as_nanos();
    }

    fn is_enough(&self, plan: &Plan) -> bool {
        self.operations >= plan.operations_min || self.time_ns >= plan.budget.as_nanos()
    }

    fn cost(&self) -> Cost {
        let ns_per_op = self.time_ns as f64 / self.operations.max(1) as f64;
        Cost {
            ns_per_op,
            extrapolated: false,
        }
    }
}

/// Calls `work(0)`, `work(1)`, ... up to `count` times or until the time limit, reading the clock
/// between blocks of growing size.
fn within_budget(
    budget: Duration,
    count: usize,
    clock: &mut dyn FnMut() -> Instant,
    mut work: impl FnMut(usize),
) -> Tally {
    let begin = clock();
    let mut tally = Tally::default();
    let mut block = 16;
    while tally.operations < count && tally.time_ns < budget.as_nanos() {
        let end = count.min(tally.operations + block);
        (tally.operations..end).for_each(&mut work);
        let time_ns = clock().since(begin).as_nanos();
        if time_ns - tally.time_ns < budget.as_nanos() / 64 {
            block *= 2;
        }
        tally = Tally {
            operations: end,
            time_ns,
        };
    }
    tally
}

/// One store under measurement.
struct Bench<'a> {
    timers: AnyTimers,
    ids: Vec<TimerId>,
    now: Instant,
    plan: &'a Plan,
    clock: &'a mut dyn FnMut() -> Instant,
}

impl<'a> Bench<'a> {
    fn new(
        kind: TimerKind,
        tick: Duration,
        plan: &'a Plan,
        clock: &'a mut dyn FnMut() -> Instant,
    ) -> Self {
        let mut timers = AnyTimers::new(kind, tick);
        let unused = timers.insert(Instant::ZERO, 0);
        timers.cancel(unused);
        let ids = vec![unused; plan.spans.len()];
        let mut bench = Self {
            timers,
            ids,
            now: Instant::ZERO,
            plan,
            clock,
        };
        bench.arm_all();
        bench.cancel_all();
        bench
    }

    /// Arms all timers. The list gets them latest first, which it inserts in O(1).
    fn arm_all(&mut self) {
        let Self {
            timers,
            ids,
            now,
            plan,
            ..
        } = self;
        let kind = timers.kind();
        let mut arm = |i: usize| ids[i] = timers.insert(*now + plan.spans[i], i as u32);
        match kind {
            TimerKind::List => plan.latest_first.iter().copied().for_each(&mut arm),
            TimerKind::Tree | TimerKind::Wheel => (0..plan.spans.len()).for_each(&mut arm),
        }
    }

    fn cancel_all(&mut self) -> usize {
        for &i in &self.plan.cancelling {
            self.timers.cancel(self.ids[i]);
        }
        self.ids.len()
    }

    fn expire_all(&mut self) -> usize {
        while let Some(next) = self.timers.next_deadline() {
            self.now = self.now.max(next);
            while let Some(expired) = self.timers.pop_due(self.now) {
                black_box(expired);
            }
        }
        self.ids.len()
    }

    /// Costs of insert, cancel and expire.
    fn fill_and_empty(&mut self) -> [Cost; 3] {
        let n = self.ids.len();
        let [mut insert, mut cancel, mut expire] = [Tally::default(); 3];
        let mut reached = n;
        while !(insert.is_enough(self.plan)
            && cancel.is_enough(self.plan)
            && expire.is_enough(self.plan))
        {
            if !insert.is_enough(self.plan) {
                let Self {
                    timers,
                    ids,
                    now,
                    plan,
                    clock,
                } = self;
                let filled = within_budget(plan.budget, n, clock, |i| {
                    ids[i] = timers.insert(*now + plan.spans[i], i as u32);
                });
                reached = reached.min(filled.operations);
                insert.operations += filled.operations;
                insert.time_ns += filled.time_ns;
                self.cancel_all();
            }
            self.arm_all();
            self.timed(&mut cancel, Self::cancel_all);
            self.arm_all();
            self.timed(&mut expire, Self::expire_all);
        }
        let insert = if reached < n {
            self.insert_at_n()
        } else {
            insert.cost()
        };
        [insert, cancel.cost(), expire.cost()]
    }

    /// The mean cost of an insert, estimated from inserts with all n armed.
    fn insert_at_n(&mut self) -> Cost {
        self.arm_all();
        let Self {
            timers,
            now,
            plan,
            clock,
            ..
        } = self;
        let n = plan.spans.len();
        let tally = within_budget(plan.budget, plan.operations_min, clock, |i| {
            let id = timers.insert(*now + plan.spans[i % n], 0);
            timers.cancel(id);
        });
        self.cancel_all();
        Cost {
            ns_per_op: tally.cost().ns_per_op / 2.0,
            extrapolated: true,
        }
    }

    fn timed(&mut self, tally: &mut Tally, work: impl FnOnce(&mut Self) -> usize) {
        let begin = (self.clock)();
        tally.operations += work(self);
        tally.time_ns += (self.clock)().since(begin).as_nanos();
    }

    /// Cost of one expiry and one insert, with n timers armed throughout.
    fn steady(&mut self) -> Cost {
        self.arm_all();
        let Self {
            timers,
            now,
            plan,
            clock,
            ..
        } = self;
        let n = plan.spans.len();
        within_budget(plan.budget, plan.operations_min.max(2 * n), clock, |i| {
            let expired = loop {
                let next = timers.next_deadline().expect("n timers are armed");
                *now = next.max(*now);
                if let Some(expired) = timers.pop_due(*now) {
                    break expired;
                }
            };
            timers.insert(*now + plan.spans[i % n], expired.token);
        })
        .cost()
    }
}

/// The bare loop: the same entries in a `Vec`.
struct Floor {
    push: Cost,
    pop: Cost,
    both: Cost,
}

impl Floor {
    fn measure(plan: &Plan, clock: &mut dyn FnMut() -> Instant) -> Self {
        let n = plan.spans.len();
        let mut entries: Vec<Expired> = Vec::with_capacity(n);
        let entry = |i: usize| Expired {
            token: i as u32,
            at: Instant::ZERO + plan.spans[i],
        };
        let [mut push, mut pop, mut both] = [Tally::default(); 3];
        // The first round maps the memory.
        for round in 0.. {
            if round == 1 {
                [push, pop, both] = [Tally::default(); 3];
            } else if round > 1 && both.is_enough(plan) {
                break;
            }
            push.time(clock, || {
                (0..n).for_each(|i| black_box(&mut entries).push(entry(i)));
                n
            });
            both.time(clock, || {
                for i in 0..n {
                    black_box(entries.pop());
                    black_box(&mut entries).push(entry(i));
                }
                n
            });
            pop.time(clock, || {
                core::iter::from_fn(|| black_box(entries.pop())).count()
            });
        }
        Self {
            push: push.cost(),
            pop: pop.cost(),
            both: both.cost(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that advances by the same step at each reading.
    fn stepping(step_ns: u64) -> impl FnMut() -> Instant {
        let mut now = Instant::ZERO;
        move || {
            now += Duration::from_nanos(step_ns);
            now
        }
    }

    fn config(sizes: &[usize], budget: Duration) -> Config {
        Config {
            sizes: sizes.to_vec(),
            budget,
            ..Config::default()
        }
    }

    #[test]
    fn every_store_and_operation_is_measured_at_every_size() {
        let config = config(&[0, 1, 100, 500], Duration::from_millis(10));
        let mut heard = 0;
        let report = run(&config, &mut stepping(1_000), &mut |_| heard += 1);
        assert_eq!(report.rows.len(), 3 * 4 * 4);
        assert_eq!(heard, report.rows.len());
        for row in &report.rows {
            assert!(row.ns_per_op.is_finite() && row.ns_per_op > 0.0, "{row:?}");
            assert!(!row.extrapolated, "{row:?}");
        }
        let wheel = report
            .rows
            .iter()
            .filter(|row| row.store == "wheel" && row.n == 100);
        let operations: Vec<&str> = wheel.map(|row| row.operation).collect();
        assert_eq!(operations, ["insert", "cancel", "expire", "steady"]);
    }

    #[test]
    fn a_store_that_is_not_filled_within_the_budget_is_judged_from_inserts_at_n() {
        // The clock advances 1 ms at each reading, so the first block of 16 inserts already exceeds
        // the limit.
        let config = config(&[1_600], Duration::from_micros(1));
        let report = run(&config, &mut stepping(1_000_000), &mut |_| {});
        for row in report.rows.iter().filter(|row| row.store != FLOOR) {
            assert_eq!(row.extrapolated, row.operation == "insert", "{row:?}");
        }
        let list = report.rows.iter().find(|row| row.store == "list").unwrap();
        assert_eq!(
            (list.operation, list.ns_per_op),
            ("insert", 1e6 / 16.0 / 2.0)
        );
    }
}
