//! How many packets of shaped subscribers one path and several forward, each on a thread of its own. A measurement, not a
//! check of a time:
//!
//! ```text
//! cargo test --release -p headend-edge --test subscribers speed -- --ignored --nocapture
//! ```

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use base::{Duration, Instant, Route};
use edge::{Config, Handover, Inside, Outside, Path, Taken};
use hqos::spec::{NodeId, Rates, TemplateId};
use hqos::{Plan, Shape};

use crate::packets::{FAR, udp};
use crate::several::{node, plan};
use crate::stage::{Stage, from_tun, lns_config, pools};

const SUBSCRIBERS: usize = 240;
const LINKS: usize = 12;
/// Length of each IP packet.
const LENGTH: usize = 128;
/// Packets that arrive in a turn, and the virtual time of a turn.
const BATCH: usize = 32;
const TURN: Duration = Duration::from_micros(32);
const TURNS: u64 = 40_000;
/// All links of a path together carry a little less than what arrives.
const PATH_BPS: u64 = 1_000_000_000;

/// Counts datagrams and packets.
#[derive(Default)]
struct Counter {
    begun: Vec<u8>,
    count: u64,
}

impl Outside for Counter {
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        self.begun.clear();
        Some(&mut self.begun)
    }

    fn commit(&mut self, _: &Route) {
        self.count += 1;
    }
}

impl Inside for Counter {
    fn packet(&mut self, _: &[u8]) {
        self.count += 1;
    }
}

/// How packets find their path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrival {
    /// They pass without queues.
    Unshaped,
    /// They arrive where their queues are.
    Home,
    /// They arrive anywhere.
    Anywhere,
}

struct Worker {
    path: Path,
    packets: Vec<Vec<u8>>,
    inbox: Receiver<Handover>,
    doors: Vec<SyncSender<Handover>>,
}

impl Worker {
    /// Forwards packets in turns; returns how many left in a second of this thread's processor time, and how many in all.
    fn run(mut self) -> (f64, u64) {
        let before = processor_ns();
        let (mut outside, mut inside) = (Counter::default(), Counter::default());
        let mut now = Instant::ZERO + Duration::from_secs(10);
        let mut batches = Vec::new();
        let mut next = 0;
        for _ in 0..TURNS {
            now += TURN;
            while let Ok(batch) = self.inbox.try_recv() {
                let path = &mut self.path;
                path.take_handover(&batch, now, &mut outside, &mut inside);
            }
            for _ in 0..BATCH {
                next = (next + 1) % self.packets.len();
                let packet = &mut self.packets[next];
                let taken = self.path.forward(packet, now, &mut outside);
                assert_eq!(taken, Taken::Done);
            }
            while self.path.drain(now, &mut outside, &mut inside) {}
            self.path.poll_handovers(&mut batches);
            for (to, batch) in batches.drain(..) {
                // A full door makes its sender wait, so that no packet is lost for that.
                let mut batch = Some(batch);
                while let Some(one) = batch.take() {
                    match self.doors[to].try_send(one) {
                        Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                        Err(TrySendError::Full(one)) => {
                            batch = Some(one);
                            if let Ok(taken) = self.inbox.try_recv() {
                                let path = &mut self.path;
                                path.take_handover(&taken, now, &mut outside, &mut inside);
                            }
                            thread::yield_now();
                        }
                    }
                }
            }
        }
        let seconds = (processor_ns() - before) as f64 / 1e9;
        (outside.count as f64 / seconds, outside.count)
    }
}

/// This thread's processor time.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Millions of packets per second that so many paths forward: by their processor time, and by the clock.
fn measure(paths: usize, arrival: Arrival) -> [f64; 2] {
    let config = Config {
        paths: paths as u16 + 1,
        ..lns_config()
    };
    let mut stage = Stage::with_pools(config, pools("10.0.0.1", "10.0.0.250"));
    let mut all: Vec<Path> = (1..=paths).map(|n| stage.lns.replica(n)).collect();
    (0..SUBSCRIBERS).for_each(|_| stage.dial("alice", "sesame"));
    // The edge's own path has a share of the links too, which nobody uses here: it has other work.
    let bps = PATH_BPS * (paths as u64 + 1) / LINKS as u64;
    let nodes = (0..LINKS).map(|n| node(&format!("link {n}"), None, bps, 1));
    let plan: Plan = plan(nodes.collect());
    stage.lns.set_plan(plan, stage.now).unwrap();
    let mut packets: Vec<Vec<Vec<u8>>> = vec![Vec::new(); paths];
    for n in 0..SUBSCRIBERS {
        let key = stage.up[n];
        let shape = Shape {
            rates: Rates::default(),
            template: TemplateId(0),
            node: Some(NodeId((n % LINKS) as u32)),
        };
        if arrival != Arrival::Unshaped {
            stage.lns.set_shape(key, Some(shape), stage.now).unwrap();
        }
        let address = stage.lns.subscriber(key).unwrap().address.unwrap();
        let packet = from_tun(&udp(FAR, address, LENGTH - 28, true));
        match (arrival, stage.lns.home(key)) {
            (Arrival::Home, Some(home)) if home > 0 => packets[home - 1].push(packet),
            (_, Some(0)) => {}
            _ => packets.iter_mut().for_each(|all| all.push(packet.clone())),
        }
    }
    while let Some(change) = stage.lns.poll_change() {
        all.iter_mut().for_each(|path| path.apply(change.clone()));
    }
    let (doors, inboxes): (Vec<_>, Vec<_>) = (0..=paths).map(|_| sync_channel(64)).unzip();
    let mut inboxes = inboxes.into_iter();
    let first = inboxes.next().unwrap();
    let workers = all.into_iter().zip(packets).zip(inboxes);
    let workers: Vec<Worker> = workers
        .map(|((path, packets), inbox)| Worker {
            path,
            packets,
            inbox,
            doors: doors.clone(),
        })
        .collect();
    drop(doors);
    let start = std::time::Instant::now();
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| thread::spawn(|| worker.run()))
        .collect();
    let done: Vec<(f64, u64)> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let seconds = start.elapsed().as_secs_f64();
    assert!(first.try_recv().is_err());
    let sent: u64 = done.iter().map(|(_, sent)| sent).sum();
    assert!(sent > TURNS * BATCH as u64 / 2);
    let by_processor: f64 = done.iter().map(|(rate, _)| rate).sum();
    [by_processor / 1e6, sent as f64 / seconds / 1e6]
}

#[test]
#[ignore = "a measurement, for a release build on an idle machine"]
fn packets_per_second_on_one_path_and_on_two() {
    for arrival in [Arrival::Unshaped, Arrival::Home, Arrival::Anywhere] {
        for paths in [1, 2] {
            let all = (0..5).map(|_| measure(paths, arrival));
            let [processor, clock] = all.fold([0.0, 0.0], |best, one| {
                [f64::max(best[0], one[0]), f64::max(best[1], one[1])]
            });
            println!(
                "{arrival:?}, {paths} threads: {processor:.2} M/s of processor time, {clock:.2} M/s by the clock"
            );
        }
    }
}
