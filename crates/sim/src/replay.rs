//! A fresh machine driven by the recorded inputs of another.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use base::Instant;

use crate::node::{DatagramMachine, Held, Node};
use crate::recording::{Entry, Recording};

/// What the owner of a replayed machine has to repeat.
#[derive(Debug)]
pub enum Call<'a, E> {
    /// The owner made its call of this number, counted from 0.
    Command(usize),
    /// The machine had this event, which is not stored yet: what `World::on_event` did.
    Event(&'a E),
}

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed<M: DatagramMachine> {
    /// The machine after the last input.
    pub machine: M,
    /// Its events.
    pub events: Vec<(Instant, M::Event)>,
    /// What it discarded.
    pub discards: Vec<(Instant, M::Discard)>,
    /// The replay's own recording: equal to the original if the machine did the same.
    pub recording: Recording,
}

impl Recording {
    /// Drives `machine` with the recorded inputs. `owner` repeats the owner's calls; it does nothing for a machine
    /// that is never called.
    pub fn replay<M: DatagramMachine>(
        &self,
        machine: M,
        owner: impl FnMut(&mut M, Call<'_, M::Event>, Instant) + 'static,
    ) -> Replayed<M> {
        let owner = Rc::new(RefCell::new(owner));
        let mut held = Held::new(machine);
        let mut out = Vec::new();
        // The recording does not have what a machine sends on being added.
        held.drain(self.started, &mut out);
        held.recorder.start(self.started);
        let on_event = Rc::clone(&owner);
        held.on_event = Some(Box::new(move |m, event, now| {
            (on_event.borrow_mut())(m, Call::Event(event), now)
        }));
        let mut commands = 0;
        for (at, entry) in self.entries() {
            match entry {
                Entry::Sent { .. } => continue,
                // A discard is kept by `held`.
                Entry::Datagram { route, bytes } => drop(held.handle(*route, bytes, *at)),
                Entry::Timeout => held.handle_timeout(*at),
                Entry::Command => {
                    held.recorder.note(*at, || Entry::Command);
                    (owner.borrow_mut())(&mut held.machine, Call::Command(commands), *at);
                    commands += 1;
                }
            }
            held.drain(*at, &mut out);
            out.clear();
        }
        let mut recording = held.recorder.take().unwrap_or(Recording::new(self.started));
        recording.truncated |= self.truncated;
        let all = |inbox: VecDeque<_>| inbox.into_iter().collect();
        let discards = held.discards.into_iter().collect();
        Replayed {
            machine: held.machine,
            events: all(held.events),
            discards,
            recording,
        }
    }
}
