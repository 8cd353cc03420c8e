//! The cost of a wait with each poller and descriptor store, as the number of watched descriptors
//! grows while few of them are ready.
//!
//! A turn makes a few descriptors ready, waits for them, finds their owners, and reads them. The
//! idle ones are UDP sockets, as in a daemon with a socket per tunnel. The floor is epoll on the
//! ready descriptors only, without a store.
//!
//! Each row is measured several times, alternating with the others of its size. The minimum of each
//! figure is kept, because other work on the machine only adds to it.

use std::io;
use std::net::UdpSocket;

use base::Duration;
use reactor::bare;
use reactor::limits::{DESCRIPTOR_RESERVE, raise_descriptor_limit};
use reactor::{Interest, PollerKind, Reactor, StoreKind, SysCounts, Waker, clock, usage};
use serde::Serialize;

/// The name of the bare loop among the pollers.
pub const FLOOR: &str = "floor";

/// What to measure.
#[derive(Clone, Debug)]
pub struct Config {
    /// Numbers of watched descriptors, one curve point each.
    pub watched: Vec<usize>,
    /// Numbers of ready descriptors in each turn.
    pub ready: Vec<usize>,
    /// The pollers to compare.
    pub pollers: Vec<PollerKind>,
    /// The descriptor stores to compare.
    pub stores: Vec<StoreKind>,
    /// How many times each row is measured.
    pub rounds: usize,
    /// Time limit of one measurement of a row.
    pub budget: Duration,
    /// Least number of turns in one measurement, whatever the time limit.
    pub turns_min: u64,
}

impl Default for Config {
    /// 100 to 10,000 descriptors, 1 and 10 of them ready, every poller and store.
    fn default() -> Self {
        Self {
            watched: vec![100, 1_000, 10_000],
            ready: vec![1, 10],
            pollers: PollerKind::ALL.to_vec(),
            stores: StoreKind::ALL.to_vec(),
            rounds: 3,
            budget: Duration::from_millis(40),
            turns_min: 10,
        }
    }
}

/// Results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PollReport {
    /// One row per size, number of ready descriptors, poller and store, in that order; each size
    /// starts with its floor.
    pub rows: Vec<Row>,
    /// What was not measured, with the reason, one sentence each.
    pub left_out: Vec<String>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The poller, or [`FLOOR`].
    pub poller: &'static str,
    /// The descriptor store, or `none`.
    pub store: &'static str,
    /// Descriptors watched; the floor watches only the ready ones.
    pub watched: usize,
    /// Descriptors ready in each turn.
    pub ready: usize,
    /// Turns measured, over all rounds.
    pub turns: u64,
    /// Nanoseconds from before the wait until the owner of each ready descriptor is
    /// known.
    pub ns_per_wait: f64,
    /// Nanoseconds of processor time per turn, without making the descriptors ready and reading
    /// them.
    pub cpu_ns_per_wait: f64,
    /// System calls per turn by name, without those that make the descriptors ready and read them.
    pub calls_per_wait: Vec<(&'static str, f64)>,
}

/// Measures every poller with every store at every size; `on_row` is called with each finished row.
/// Raises the process's soft limit on descriptors.
///
/// # Errors
/// The kernel refuses a descriptor, or a wait fails.
pub fn run(config: &Config, on_row: &mut dyn FnMut(&Row)) -> io::Result<PollReport> {
    let room = raise_descriptor_limit()?.saturating_sub(2 * DESCRIPTOR_RESERVE);
    let mut report = PollReport {
        rows: Vec::new(),
        left_out: Vec::new(),
    };
    for &watched in &config.watched {
        if watched as u64 > room {
            report.left_out.push(format!(
                "{watched} descriptors: the process may have no more than {room} for this"
            ));
            continue;
        }
        measure_size(config, watched, on_row, &mut report)?;
    }
    report.left_out.dedup();
    Ok(report)
}

/// Measures all rows of one size.
fn measure_size(
    config: &Config,
    watched: usize,
    on_row: &mut dyn FnMut(&Row),
    report: &mut PollReport,
) -> io::Result<()> {
    for &ready in config
        .ready
        .iter()
        .filter(|&&ready| ready > 0 && ready <= watched)
    {
        // The ready descriptors are in the middle, by number and by order of adding. A list is then
        // searched halfway, and poll(2) does less for descriptors after the last ready one.
        let before = open_idle((watched - ready) / 2)?;
        let wakers: Vec<Waker> = (0..ready)
            .map(|_| Waker::new())
            .collect::<io::Result<_>>()?;
        let after = open_idle(watched - ready - before.len())?;
        let idle = [&before[..], &after[..]];
        let mut benches = vec![Bench::floor(&wakers)?];
        for &poller in &config.pollers {
            for &store in &config.stores {
                match Bench::reactor(poller, store, idle, &wakers) {
                    Ok(bench) => benches.push(bench),
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                        report.left_out.push(error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let mut unwaited = f64::INFINITY;
        for _ in 0..config.rounds.max(1) {
            unwaited = unwaited.min(unwaited_cpu(config, &wakers));
            for bench in &mut benches {
                bench.round(config, &wakers)?;
            }
        }
        for bench in benches {
            let Some(mut row) = bench.best else { continue };
            row.cpu_ns_per_wait = (row.cpu_ns_per_wait - unwaited).max(0.0);
            on_row(&row);
            report.rows.push(row);
        }
    }
    Ok(())
}

/// Sockets that receive nothing.
fn open_idle(count: usize) -> io::Result<Vec<UdpSocket>> {
    (0..count).map(|_| UdpSocket::bind("127.0.0.1:0")).collect()
}

/// Nanoseconds of processor time of a turn without its wait.
fn unwaited_cpu(config: &Config, wakers: &[Waker]) -> f64 {
    let (end, before) = (clock::now() + config.budget, usage::thread_cpu());
    let mut turns = 0_u64;
    while turns < config.turns_min || clock::now() < end {
        wakers.iter().for_each(Waker::wake);
        // As many clock readings as in a turn with a wait.
        std::hint::black_box(clock::now());
        for waker in wakers {
            waker.clear();
        }
        turns += 1;
    }
    let took = usage::thread_cpu().as_nanos() - before.as_nanos();
    took as f64 / turns as f64
}

/// A poller with its store.
enum Waiter {
    Floor(bare::Epoll),
    Reactor(Box<Reactor>),
}

impl Waiter {
    /// Waits, and notes the index of each waker found ready.
    fn wait(&mut self, found: &mut Vec<usize>) -> io::Result<()> {
        found.clear();
        match self {
            Waiter::Floor(epoll) => found.extend(epoll.wait()?),
            Waiter::Reactor(reactor) => {
                reactor.wait(None)?;
                while let Some(ready) = reactor.next_ready() {
                    // Each is read completely below, before the next wait.
                    reactor.drained(ready.token);
                    found.push(ready.user as usize);
                }
            }
        }
        Ok(())
    }
}

/// A row being measured, with the minimum of its figures so far; its processor time covers whole
/// turns.
struct Bench {
    poller: &'static str,
    store: &'static str,
    watched: usize,
    waiter: Waiter,
    best: Option<Row>,
}

impl Bench {
    fn floor(wakers: &[Waker]) -> io::Result<Self> {
        let waiter = Waiter::Floor(bare::Epoll::new(wakers)?);
        let watched = wakers.len();
        Ok(Self {
            poller: FLOOR,
            store: "none",
            watched,
            waiter,
            best: None,
        })
    }

    fn reactor(
        poller: PollerKind,
        store: StoreKind,
        idle: [&[UdpSocket]; 2],
        wakers: &[Waker],
    ) -> io::Result<Self> {
        let mut reactor = Reactor::new(poller, store)?;
        for socket in idle[0] {
            reactor.add(socket, "idle", u64::MAX, Interest::READ)?;
        }
        for (index, waker) in wakers.iter().enumerate() {
            reactor.add(waker, "ready", index as u64, Interest::READ)?;
        }
        for socket in idle[1] {
            reactor.add(socket, "idle", u64::MAX, Interest::READ)?;
        }
        Ok(Self {
            poller: poller.name(),
            store: store.name(),
            watched: reactor.watched(),
            waiter: Waiter::Reactor(Box::new(reactor)),
            best: None,
        })
    }

    /// Measures once and keeps the minimum.
    fn round(&mut self, config: &Config, wakers: &[Waker]) -> io::Result<()> {
        let mut found = Vec::with_capacity(wakers.len());
        let (mut turns, mut waited) = (0_u64, Duration::ZERO);
        let calls_before = SysCounts::of_this_thread();
        let (end, cpu_before) = (clock::now() + config.budget, usage::thread_cpu());
        loop {
            wakers.iter().for_each(Waker::wake);
            let mut left = wakers.len();
            let mut after = end;
            while left > 0 {
                // io_uring may return them over more than one wait.
                let before = clock::now();
                self.waiter.wait(&mut found)?;
                after = clock::now();
                waited = waited + after.since(before);
                left -= found.iter().filter(|&&index| wakers[index].clear()).count();
            }
            turns += 1;
            if turns >= config.turns_min && after >= end {
                break;
            }
        }
        let cpu = usage::thread_cpu().as_nanos() - cpu_before.as_nanos();
        let calls = SysCounts::of_this_thread().since(&calls_before);
        let per_turn = |total: u64| total as f64 / turns as f64;
        let row = Row {
            poller: self.poller,
            store: self.store,
            watched: self.watched,
            ready: wakers.len(),
            turns,
            ns_per_wait: per_turn(waited.as_nanos()),
            cpu_ns_per_wait: per_turn(cpu),
            calls_per_wait: calls
                .iter()
                .filter(|(name, _)| !matches!(*name, "read" | "write"))
                .map(|(name, count)| (name, per_turn(count)))
                .collect(),
        };
        match &mut self.best {
            Some(best) => {
                best.ns_per_wait = best.ns_per_wait.min(row.ns_per_wait);
                best.cpu_ns_per_wait = best.cpu_ns_per_wait.min(row.cpu_ns_per_wait);
                best.turns += row.turns;
            }
            None => self.best = Some(row),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> Config {
        Config {
            watched: vec![4, 64, usize::MAX],
            ready: vec![1, 3],
            rounds: 1,
            budget: Duration::ZERO,
            turns_min: 3,
            ..Config::default()
        }
    }

    #[test]
    fn every_poller_and_store_has_a_row_at_every_size_that_fits() {
        let mut heard = 0;
        let report = run(&quick(), &mut |_| heard += 1).unwrap();
        assert_eq!(heard, report.rows.len());
        let pollers = if report.left_out.len() > 1 { 3 } else { 4 };
        assert_eq!(
            report.rows.len(),
            2 * 2 * (1 + pollers * StoreKind::ALL.len())
        );
        for row in &report.rows {
            assert!(row.turns >= 3 && row.ns_per_wait > 0.0, "{row:?}");
            let expected = if row.poller == FLOOR {
                row.ready
            } else {
                row.watched
            };
            assert_eq!(row.watched, expected);
        }
        assert!(
            report
                .left_out
                .last()
                .unwrap()
                .starts_with("18446744073709551615 descriptors")
        );
    }

    #[test]
    fn a_wait_takes_one_call_of_its_poller() {
        let report = run(&quick(), &mut |_| {}).unwrap();
        for row in report.rows.iter().filter(|row| row.poller != "io_uring") {
            let call = if row.poller.starts_with("poll") {
                "ppoll"
            } else {
                "epoll_pwait2"
            };
            assert_eq!(row.calls_per_wait, [(call, 1.0)], "{row:?}");
        }
    }
}
