//! Interleaves many connections in one capture, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use sim::Rng;

use super::flow::{Flow, Moment, Plan};
use super::frame::Capture;

/// Number of packets between two progress reports.
const TELL_EVERY: u64 = 1 << 16;

/// Connections that start one after another, and other traffic on the link.
pub(super) trait Load {
    /// The next connection and its start time, which never decreases; `None` after the last.
    fn next(&mut self, rng: &mut Rng) -> Option<(u64, Plan)>;

    /// Writes other traffic right after a packet of a connection.
    ///
    /// # Errors
    /// Those of the file.
    fn beside(&mut self, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let _ = at;
        Ok(())
    }
}

/// Writes all packets of `load`; `progress` is called at intervals with the number so far.
///
/// # Errors
/// Those of the file.
pub(super) fn run(
    load: &mut dyn Load,
    rng: &mut Rng,
    capture: &mut Capture<'_>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut unused: Vec<usize> = Vec::new();
    let mut due: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut waiting = load.next(rng);
    let mut tell_at = TELL_EVERY;
    loop {
        let next = due.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        if let Some((start, plan)) = waiting.take_if(|(start, _)| *start <= next) {
            let flow = Flow::new(plan, start, rng);
            let slot = match unused.pop() {
                Some(slot) => {
                    flows[slot] = flow;
                    slot
                }
                None => {
                    flows.push(flow);
                    flows.len() - 1
                }
            };
            due.push(Reverse((start, slot)));
            waiting = load.next(rng);
            continue;
        }
        let Some(mut first) = due.peek_mut() else {
            return Ok(());
        };
        let Reverse((now, slot)) = *first;
        let mut at = Moment { now, rng, capture };
        flows[slot].step(&mut at)?;
        load.beside(&mut at)?;
        match flows[slot].next_at() {
            Some(next) => *first = Reverse((next, slot)),
            None => {
                std::collections::binary_heap::PeekMut::pop(first);
                unused.push(slot);
            }
        }
        if capture.written().packets >= tell_at {
            progress(capture.written().packets);
            tell_at += TELL_EVERY;
        }
    }
}
