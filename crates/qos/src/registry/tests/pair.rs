//! A FIFO of two packets: what a file has to declare to be a discipline. It exists in tests only.

use base::Instant;

use crate::discipline::{Backlog, Discipline, Statistics};
use crate::fifo::{Fifo, Limit as FifoLimit};
use crate::packet::{Id, Pool};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{LimitBy, Offer, Queue, Setting, Takes, Value};

/// `second`: whether the second packet is taken.
static SECOND: Setting = Setting {
    name: "second",
    takes: Takes::Flag,
    caution: None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    packets: u32,
}

#[derive(Debug)]
struct Pair(Fifo);

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["pair"],
        queues: &[Queue {
            offer: Offer {
                name: "pair",
                template: "pair",
                settings: &[&SECOND],
                limit: LimitBy::Packets(2),
                bounds_delay: false,
            },
            plan: |given| match given.settings.get(&SECOND) {
                Some(Value::Flag(false)) => Options { packets: 1 },
                _ => Options { packets: 2 },
            },
        }],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "pair"
    }

    fn options(&self) -> String {
        format!("packets {}", self.packets)
    }

    fn packets_max(&self) -> u32 {
        self.packets
    }

    fn make(&self, _: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(Pair(Fifo::new(FifoLimit::Packets(self.packets)))))
    }
}

impl Discipline for Pair {
    fn kind(&self) -> &'static str {
        "pair"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.0.enqueue(pool, id, now)
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        self.0.dequeue(pool, now)
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        self.0.next_time(now)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.0.drain(pool, into);
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.0.restore(pool, id, now)
    }
}
