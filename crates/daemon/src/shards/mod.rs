//! Packets on further cores. Each core has a thread with its own sockets on the same addresses, its
//! own queue of the TUN device and its own copy of the edge's data path. All other work stays on
//! the first thread.
//!
//! Shards receive state changes from the first thread in order, and hand it, in batches, every
//! frame that is not subscriber data. If the first thread falls behind, further batches are dropped
//! and counted, as with a full socket. Packets of shaped subscribers go, in batches too, to the thread
//! that has their queues.
//!
//! Start with [`Shards::start`].
//!
//! | file | contents |
//! |---|---|
//! | `steer` | chooses the thread of a datagram |
//! | `worker` | the loop of a thread |
//! | `batch` | items that a thread passes to the first thread |
//! | `doors` | packets that any thread passes to the one with their queues |

mod batch;
mod doors;
mod steer;
mod worker;

use crate::config::PppoeInterface;
use crate::ports::Ports;
use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::served::{Change, Edge, Path};
use anyhow::{Context, Result};
use edge::Handover;
use reactor::{Interest, Reactor, SocketStats, Waker, faults};

use super::inside::{Inside, Queue, Written};
use super::sockets::{self, Sockets};
use super::source::Source;
use crate::config::Event;
pub(crate) use batch::Batch;
use doors::{Doors, Inbox};
use worker::Worker;

/// Limit of batches waiting for the first thread, of all threads together.
const BATCHES_MAX: usize = 64;

/// Batches that the first thread takes in a turn before it does other work.
pub(super) const PART: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) thread: i32,
    pub(super) udp: SocketStats,
    pub(super) written: Written,
    /// Datagrams and packets dropped because the first thread was behind.
    pub(super) dropped: u64,
    /// Datagrams that could not be sent.
    pub(super) send_dropped: u64,
    /// Packets dropped because there is no device.
    pub(super) nowhere: u64,
    /// Failures of the thread's sockets and queue.
    pub(super) faults: u64,
}

/// A message to a packet thread.
pub(super) enum Order {
    /// A change of the data path.
    Change(Change),
    /// A queue of the TUN device that was made again, and how often it was made.
    Queue(Queue, u64),
    /// The PPPoE interface with this number is there again, or has another MAC address or MTU.
    Port(u32),
}

/// A packet thread, as the first thread sees it.
struct Shard {
    orders: Sender<Order>,
    /// Number of changes that the thread has applied.
    applied: Arc<AtomicU64>,
    waker: Arc<Waker>,
    stats: Arc<Mutex<Stats>>,
    thread: JoinHandle<io::Result<()>>,
}

/// All further threads, as the first thread sees them.
pub(super) struct Shards {
    shards: Vec<Shard>,
    batches: Receiver<Batch>,
    /// Packets for queues on other threads, and for queues on the first one.
    doors: Doors,
    inbox: Option<Inbox>,
    parcels: Vec<(usize, Handover)>,
    waker: Arc<Waker>,
    /// How often the TUN device was made again, and the same number of the device whose queue a thread
    /// has lost, plus one.
    made: u64,
    lost: Arc<AtomicU64>,
    /// Whether a thread has ended. A thread ends only if it cannot continue.
    ended: Arc<AtomicBool>,
    /// The kernel's thread id of the first thread.
    first: i32,
}

/// What all further threads share.
struct Common {
    batches: SyncSender<Batch>,
    doors: Doors,
    /// Wakes the first thread.
    first: Arc<Waker>,
    lost: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Common {
    /// Starts a thread.
    fn shard(&self, event: &Event, path: Path, seat: Seat, inbox: Inbox) -> Result<Shard> {
        let Seat {
            mut reactor,
            sockets,
            ports,
            inside,
        } = seat;
        let number = path.number();
        let (orders, its_orders) = mpsc::channel();
        let waker = inbox.waker();
        let source = Source::Shards.to_bits();
        reactor.add(&*waker, "changes", source, Interest::READ)?;
        let stats = Arc::new(Mutex::default());
        let applied = Arc::new(AtomicU64::new(0));
        let worker = Worker::new(worker::Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            batch: event.batch,
            orders: its_orders,
            waker: Arc::clone(&waker),
            batches: self.batches.clone(),
            doors: self.doors.clone(),
            inbox,
            first: Arc::clone(&self.first),
            stats: Arc::clone(&stats),
            applied: Arc::clone(&applied),
            lost: Arc::clone(&self.lost),
            ended: Arc::clone(&self.ended),
        });
        let heir = faults::heir();
        let thread = std::thread::Builder::new()
            .name(format!("packets {number}"))
            .spawn(move || worker.run(heir))?;
        Ok(Shard {
            orders,
            applied,
            waker,
            stats,
            thread,
        })
    }
}

/// A thread's descriptors, opened while the daemon still has privileges.
pub(super) struct Seat {
    reactor: Reactor,
    sockets: Sockets,
    ports: Ports,
    inside: Inside,
}

/// Opens a seat for each further thread.
pub(super) fn seats(
    event: &Event,
    sockets: &Sockets,
    interfaces: &[PppoeInterface],
    queues: Vec<Queue>,
) -> Result<Vec<Seat>> {
    let mut queues = queues.into_iter();
    let seat = |number| {
        let mut reactor = Reactor::new(event.poller, event.descriptors)?;
        Ok(Seat {
            sockets: sockets
                .copy(event, &mut reactor)
                .context("cannot bind a listening address a second time")?,
            ports: Ports::open(interfaces, event, number).context("pppoe")?,
            inside: match queues.next() {
                Some(queue) => Inside::of_queue(queue, &mut reactor)?,
                None => Inside::nowhere(),
            },
            reactor,
        })
    };
    (1..event.shards).map(seat).collect()
}

impl Shards {
    /// Starts a turn: wake-ups from now on are for the next one.
    pub(super) fn begin_turn(&self) {
        self.waker.clear();
    }

    /// The next batch that a thread has passed to the first thread, if there is one.
    pub(super) fn next_batch(&self) -> Option<Batch> {
        self.batches.try_recv().ok()
    }

    /// The packets for queues on the first thread: a part of them, or all that are there now.
    pub(super) fn take_handovers(&self, all: bool, work: impl FnMut(&Handover)) {
        if let Some(inbox) = &self.inbox {
            inbox.take(all, work);
        }
    }

    /// The changes that every thread has applied. What threads handed over before is in the inboxes.
    pub(super) fn applied(&self) -> Option<u64> {
        let applied = self.shards.iter().map(|shard| shard.applied.load(Acquire));
        applied.min()
    }

    /// Ends a turn in which `taken` batches were read.
    ///
    /// # Errors
    /// A thread has ended.
    pub(super) fn end_turn(&self, taken: usize) -> io::Result<()> {
        if taken == PART {
            // More batches may wait.
            self.waker.wake();
        }
        if self.ended.load(Acquire) {
            return Err(io::Error::other("a thread that passes packets ended"));
        }
        Ok(())
    }

    /// Starts a thread for each of the edge's further paths. The daemon has dropped its privileges before.
    pub(super) fn start(
        event: &Event,
        cookie: u8,
        edge: &Edge,
        sockets: &Sockets,
        seats: Vec<Seat>,
        reactor: &mut Reactor,
    ) -> Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let (sender, batches) = mpsc::sync_channel(BATCHES_MAX);
        let (doors, inboxes) = doors::open(&waker, seats.len())?;
        let mut inboxes = inboxes.into_iter();
        let inbox = inboxes.next();
        let common = Common {
            batches: sender,
            doors,
            first: waker,
            lost: Arc::default(),
            ended: Arc::default(),
        };
        let mut shards = Vec::new();
        for ((seat, inbox), number) in seats.into_iter().zip(inboxes).zip(1..) {
            shards.push(common.shard(event, edge.replica(number), seat, inbox)?);
        }
        let Common {
            doors,
            first: waker,
            lost,
            ended,
            ..
        } = common;
        if event.shards > 1 {
            let program = steer::program(event.steer, event.shards.into(), cookie);
            if let Err(error) = sockets.steer(&program) {
                tracing::warn!(%error, "the kernel chooses the core of each datagram by its flow");
            }
            reactor.add(&*waker, "shards", Source::Shards.to_bits(), Interest::READ)?;
        }
        Ok(Self {
            shards,
            batches,
            doors,
            inbox,
            parcels: Vec::new(),
            waker,
            made: 0,
            lost,
            ended,
            first: reactor::usage::this_thread(),
        })
    }

    /// Counters of each thread. The caller passes the counters of the first thread.
    pub(super) fn stats(&self, first: Stats) -> impl Iterator<Item = Stats> + '_ {
        let first = Stats {
            thread: self.first,
            ..first
        };
        let read = |shard: &Shard| *shard.stats.lock().unwrap_or_else(PoisonError::into_inner);
        core::iter::once(first).chain(self.shards.iter().map(read))
    }

    /// Sums of the counters of all further threads.
    pub(super) fn sum(&self) -> Stats {
        let read = |shard: &Shard| *shard.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let add = |sum: Stats, one: Stats| Stats {
            thread: 0,
            udp: sockets::add(sum.udp, one.udp),
            written: sum.written.with(one.written),
            dropped: sum.dropped + one.dropped,
            send_dropped: sum.send_dropped + one.send_dropped,
            nowhere: sum.nowhere + one.nowhere,
            faults: sum.faults + one.faults,
        };
        self.shards.iter().map(read).fold(Stats::default(), add)
    }

    /// Sends packets for queues on other threads, then changes to every thread.
    pub(super) fn tell(&mut self, edge: &mut Edge) {
        if self.shards.is_empty() {
            return;
        }
        let owed = edge.owes();
        edge.poll_handovers(&mut self.parcels);
        self.doors.pass(&mut self.parcels, |to, batch| {
            edge.refuse_handover(to, batch)
        });
        if owed && !edge.owes() {
            // What counted as not applied until now has to be looked at again.
            self.waker.wake();
        }
        let mut told = false;
        while let Some(change) = edge.poll_change() {
            for shard in &self.shards {
                // `work` notices a thread that has ended.
                let _ = shard.orders.send(Order::Change(change.clone()));
            }
            told = true;
        }
        if told {
            self.shards.iter().for_each(|shard| shard.waker.wake());
        }
    }

    /// Gives each thread its queue of a device that was made again.
    pub(super) fn give(&mut self, queues: Vec<Queue>) {
        self.made += 1;
        for (shard, queue) in self.shards.iter().zip(queues) {
            let _ = shard.orders.send(Order::Queue(queue, self.made));
            shard.waker.wake();
        }
    }

    /// Lets each thread bind its socket of a PPPoE interface again: its filter has the interface's MAC address.
    pub(super) fn bind_port(&mut self, number: u32) {
        for shard in &self.shards {
            let _ = shard.orders.send(Order::Port(number));
            shard.waker.wake();
        }
    }

    /// Whether a thread has lost its queue of the present device since the last call.
    pub(super) fn take_lost(&self) -> bool {
        self.lost.swap(0, AcqRel) == self.made + 1
    }

    /// Ends all threads.
    pub(super) fn end(&mut self) {
        for shard in self.shards.drain(..) {
            drop(shard.orders);
            shard.waker.wake();
            if !matches!(shard.thread.join(), Ok(Ok(()))) {
                tracing::error!("a packet thread failed");
            }
        }
    }
}
