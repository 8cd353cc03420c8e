//! Tests disciplines with child classes: deficit round robin and bands.

use base::Instant;
use qos::classify::{Bands, Key, Map};
use qos::drr::{Class, Drr};
use qos::fifo::{Fifo, Limit};
use qos::prio::{Band, Prio};
use qos::{Backlog, Classify, Discipline, Id, Pool, Reason, Statistics};

use crate::harness::{insert, send};

/// A queue that releases no packet before a given time.
#[derive(Debug)]
struct Gate {
    queue: Fifo,
    opens: Instant,
}

impl Gate {
    fn new(opens: Instant) -> Self {
        let queue = Fifo::new(Limit::Packets(100));
        Self { queue, opens }
    }
}

impl Discipline for Gate {
    fn kind(&self) -> &'static str {
        "gate"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.queue.enqueue(pool, id, now)
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        (now >= self.opens).then(|| self.queue.dequeue(pool, now))?
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        self.queue.next_time(now).map(|at| at.max(self.opens))
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.queue.drain(pool, into);
    }
}

fn fifo() -> Box<dyn Discipline> {
    Box::new(Fifo::new(Limit::Packets(100)))
}

/// Classes by the packet's mark.
fn drr(classes: Vec<(u16, u32, Box<dyn Discipline>)>) -> Drr {
    let classes = classes.into_iter().map(|(number, quantum, child)| Class {
        name: format!("1:{number:x}"),
        number,
        quantum,
        child,
    });
    Drr::new(classes.collect(), by_mark())
}

fn by_mark() -> Box<dyn Classify> {
    let mut map = Map::new(Key::Mark);
    map.baseclass = 0;
    Box::new(map)
}

/// The flows of the dequeued packets, in order.
fn order(queue: &mut dyn Discipline, pool: &mut Pool, now: Instant) -> Vec<u32> {
    core::iter::from_fn(|| send(queue, pool, now))
        .map(|packet| packet.keys.mark)
        .collect()
}

#[test]
fn a_deficit_that_is_too_small_is_carried_over() {
    let mut pool = Pool::new(100);
    let mut queue = drr(vec![(1, 1500, fifo()), (2, 3000, fifo())]);
    for handle in 0..20 {
        let id = insert(&mut pool, handle, 1 + handle % 2, 0, 1000, Instant::ZERO);
        assert!(queue.enqueue(&mut pool, id, Instant::ZERO));
    }
    let order = order(&mut queue, &mut pool, Instant::ZERO);
    assert_eq!(
        order,
        [1, 2, 2, 2, 1, 1, 2, 2, 2, 1, 2, 2, 2, 1, 1, 2, 1, 1, 1, 1]
    );
}

#[test]
fn a_class_that_may_not_send_yet_does_not_stop_the_others() {
    let mut pool = Pool::new(100);
    let opens = Instant::from_nanos(1_000_000);
    let later = Instant::from_nanos(2_000_000);
    let mut queue = drr(vec![
        (1, 1500, Box::new(Gate::new(opens))),
        (2, 1500, fifo()),
        (3, 1500, Box::new(Gate::new(later))),
    ]);
    for (handle, flow) in [1, 3, 2, 1, 2].into_iter().enumerate() {
        let id = insert(&mut pool, handle as u32, flow, 0, 1000, Instant::ZERO);
        queue.enqueue(&mut pool, id, Instant::ZERO);
    }
    assert_eq!(queue.next_time(Instant::ZERO), Some(Instant::ZERO));
    assert_eq!(order(&mut queue, &mut pool, Instant::ZERO), [2, 2]);
    assert_eq!(queue.next_time(Instant::ZERO), Some(opens));
    assert_eq!(order(&mut queue, &mut pool, opens), [1, 1]);
    assert_eq!(queue.next_time(opens), Some(later));
    assert_eq!(order(&mut queue, &mut pool, later), [3]);
    assert_eq!(queue.next_time(later), None);
}

#[test]
fn a_packet_that_waits_for_its_class_s_deficit_is_counted_and_drained() {
    let mut pool = Pool::new(100);
    let mut queue = drr(vec![(1, 500, fifo()), (2, 500, fifo())]);
    for (handle, (flow, length)) in [(1, 1400), (2, 100), (1, 100)].into_iter().enumerate() {
        let id = insert(&mut pool, handle as u32, flow, 0, length, Instant::ZERO);
        queue.enqueue(&mut pool, id, Instant::ZERO);
    }
    let first = send(&mut queue, &mut pool, Instant::ZERO);
    assert_eq!(first.map(|packet| packet.keys.mark), Some(2));
    let backlog = Backlog {
        packets: 2,
        bytes: 1500,
    };
    assert_eq!(queue.backlog(), backlog);
    assert_eq!(queue.classes()[0].backlog, backlog);
    let mut out = Vec::new();
    queue.drain(&mut pool, &mut out);
    let handles: Vec<u32> = out.iter().map(|&id| pool.get(id).handle).collect();
    assert_eq!(handles, [0, 2]);
    assert_eq!(queue.backlog(), Backlog::default());
}

#[test]
fn a_packet_without_a_class_is_discarded_by_drr_and_goes_by_its_octet_in_prio() {
    let mut pool = Pool::new(100);
    let mut queue = drr(vec![(7, 1500, fifo())]);
    for (flow, taken) in [(6, false), (7, true), (8, false), (0, false)] {
        let id = insert(&mut pool, flow, flow, 0, 1000, Instant::ZERO);
        assert_eq!(queue.enqueue(&mut pool, id, Instant::ZERO), taken);
    }
    let lost: Vec<(u32, Reason)> = pool.discarded().collect();
    assert_eq!(lost, [6, 8, 0].map(|handle| (handle, Reason::Unclassified)));

    let bands = ["1:1", "1:2", "1:3"].map(|name| Band {
        name: name.to_owned(),
        child: fifo(),
    });
    let mut queue = Prio::new(bands.into(), Some(by_mark()), Bands::DSCP);
    // The filter's classes are 1 to 3. Packets for other classes are sorted by their TOS byte: EF first, CS1 last.
    for (flow, traffic_class) in [(9, 0x20), (3, 0xb8), (8, 0), (2, 0), (7, 0xb8), (1, 0x20)] {
        let id = insert(&mut pool, flow, flow, traffic_class, 100, Instant::ZERO);
        assert!(queue.enqueue(&mut pool, id, Instant::ZERO));
    }
    let waiting: Vec<u32> = queue
        .classes()
        .iter()
        .map(|class| class.backlog.packets)
        .collect();
    assert_eq!(waiting, [2, 2, 2]);
    assert_eq!(
        order(&mut queue, &mut pool, Instant::ZERO),
        [7, 1, 8, 2, 9, 3]
    );
}

#[test]
fn a_band_that_may_not_send_yet_lets_the_next_one_go() {
    let mut pool = Pool::new(100);
    let opens = Instant::from_nanos(5);
    let bands = vec![
        Band {
            name: "1:1".to_owned(),
            child: Box::new(Gate::new(opens)),
        },
        Band {
            name: "1:2".to_owned(),
            child: fifo(),
        },
    ];
    let mut queue = Prio::new(bands, Some(by_mark()), Bands::LINUX);
    for flow in [1, 2] {
        let id = insert(&mut pool, flow, flow, 0, 100, Instant::ZERO);
        queue.enqueue(&mut pool, id, Instant::ZERO);
    }
    assert_eq!(order(&mut queue, &mut pool, Instant::ZERO), [2]);
    assert_eq!(queue.next_time(Instant::ZERO), Some(opens));
    assert_eq!(order(&mut queue, &mut pool, opens), [1]);
}
