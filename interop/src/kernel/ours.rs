//! The same packets, at the same times, through one of our queues.

use super::{Fate, Timed};
use base::Instant;
use qos::{Discipline, Packet, Pool};
use wire::flow::Keys;

/// Bytes of Ethernet's header, which the kernel counts too.
const ETHERNET: u32 = 14;

/// Passes the packets to `queue` at the times when the kernel got them. The result has the kernel's form: which
/// packets left, when, and how they were marked.
pub(crate) fn run(mut queue: Box<dyn Discipline>, packets: &[Timed], kernel: &[Fate]) -> Vec<Fate> {
    let mut pool = Pool::new(1 << 20);
    let mut fates: Vec<Fate> = kernel
        .iter()
        .map(|fate| Fate {
            sent_ns: fate.sent_ns,
            ..Fate::default()
        })
        .collect();
    let mut leave = |queue: &mut dyn Discipline, pool: &mut Pool, now: Instant| {
        while let Some(id) = queue.dequeue(pool, now) {
            let packet = pool.take(id);
            let fate = &mut fates[packet.handle as usize];
            let class = packet.keys.traffic_class;
            fate.arrived_ns = Some(now.as_nanos());
            fate.traffic_class = if packet.marked { class | 0b11 } else { class };
        }
        pool.discarded().for_each(drop);
    };
    for ((handle, timed), fate) in (0..).zip(packets).zip(kernel) {
        let now = Instant::from_nanos(fate.sent_ns);
        while let Some(next) = queue.next_time(now).filter(|&next| next < now) {
            let before = queue.backlog();
            leave(&mut *queue, &mut pool, next);
            if queue.backlog() == before && queue.next_time(next).is_none_or(|again| again <= next)
            {
                break;
            }
        }
        let length = u32::try_from(timed.packet.len()).unwrap_or(u32::MAX) + ETHERNET;
        let packet = Packet {
            handle,
            length,
            keys: Keys::read(&timed.packet),
            arrived: now,
            ..Packet::default()
        };
        if let Some(id) = pool.insert(packet) {
            queue.enqueue(&mut pool, id, now);
        }
        leave(&mut *queue, &mut pool, now);
    }
    let mut now = Instant::from_nanos(kernel.last().map_or(0, |fate| fate.sent_ns));
    while let Some(next) = queue.next_time(now) {
        now = next.max(now);
        leave(&mut *queue, &mut pool, now);
    }
    fates
}
