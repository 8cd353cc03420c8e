//! Questions and commands to the NATs of all paths, and their answers.
//!
//! A question is a change that every path applies: each path answers at its place. The edge's own path answers at once, so
//! that an edge with one path has its answer when it asks.

use core::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use base::Instant;
use nat::{Block, Counters, Forward, ForwardError, ForwardRequest, Protocol, SubscriberView};

use super::Path;
use super::change::NatStep;
use super::nat::Translator;
use crate::access::Encapsulation;

/// The external end of a forwarded port: address, port, protocol.
pub(crate) type ForwardKey = (Ipv4Addr, u16, Protocol);

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// Counters and levels.
    Totals,
    /// Subscribers of one path, from a cursor on, so many.
    Subscribers { path: u8, cursor: u32, most: usize },
    /// Forwarded ports behind one, so many.
    Forwards {
        after: Option<ForwardKey>,
        most: usize,
    },
    /// Who has an external port.
    Owner { external: Ipv4Addr, port: u16 },
    /// Forwards a port: on one path, or on all. The subscriber is on one path.
    Forward {
        on: Option<u8>,
        subscriber: Option<(u8, u32, u64)>,
        wish: ForwardRequest,
    },
    /// Ends a forwarding.
    Unforward(ForwardKey),
}

/// An answer of one path.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The question is for another path.
    Nothing,
    Totals(Box<NatTotals>),
    Subscribers(Vec<SubscriberView>, Option<u32>),
    /// With the most that it could be.
    Forwards(Vec<Forward>, usize),
    Owner(Owner),
    Forward(Result<Forward, ForwardError>),
    Unforward(Option<Forward>),
}

impl Answer {
    /// What was forwarded.
    pub(crate) fn done(&self) -> Option<Forward> {
        match self {
            Self::Forward(forward) => forward.ok(),
            _ => None,
        }
    }

    /// Whether a port could not be forwarded.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Forward(Err(_)))
    }
}

/// A question with the places of its answers.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    question: Question,
    now: Instant,
    answers: Arc<[Mutex<Option<Answer>>]>,
}

impl Inquiry {
    pub(crate) fn new(question: Question, paths: u16, now: Instant) -> Self {
        Self {
            question,
            now,
            answers: (0..paths.max(1)).map(|_| Mutex::default()).collect(),
        }
    }

    fn put(&self, path: usize, answer: Answer) {
        if let Some(place) = self.answers.get(path) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
    }

    /// Whether all paths have answered.
    pub(crate) fn is_answered(&self) -> bool {
        let is_there = |place: &Mutex<Option<Answer>>| {
            let answer = place.lock().unwrap_or_else(PoisonError::into_inner);
            answer.is_some()
        };
        self.answers.iter().all(is_there)
    }

    /// The answers by path, once all are there.
    pub(crate) fn all(&self) -> Option<Vec<Answer>> {
        if !self.is_answered() {
            return None;
        }
        let one = |place: &Mutex<Option<Answer>>| {
            let answer = place.lock().unwrap_or_else(PoisonError::into_inner);
            answer.clone()
        };
        self.answers.iter().map(one).collect()
    }
}

/// A question to the NATs of all paths.
#[derive(Clone, Debug)]
pub struct Asked<T> {
    pub(crate) inquiry: Inquiry,
    pub(crate) merge: fn(Vec<Answer>) -> T,
}

impl<T> Asked<T> {
    /// The answer, once every path has given its part; `None` until then. With one path it is there at once.
    #[must_use]
    pub fn answer(&self) -> Option<T> {
        self.inquiry.all().map(self.merge)
    }
}

/// Counters and levels of the NATs of all paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatTotals {
    /// Counters and levels. A forwarded port below the blocks counts as one mapping.
    pub counters: Counters,
    /// Blocks on demand: free, waiting after use, and all.
    pub blocks: [u32; 3],
    /// Forwarded ports.
    pub forwards: u32,
}

/// Who has an external port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Forwardings of it.
    pub forwards: Vec<Forward>,
    /// The block that has it, if a subscriber has the block.
    pub block: Option<Block>,
}

impl NatTotals {
    pub(crate) fn merge(answers: Vec<Answer>) -> Self {
        let mut sum = Self::default();
        for answer in answers {
            if let Answer::Totals(one) = answer {
                sum.counters = sum.counters + one.counters;
                sum.forwards += one.forwards;
                let blocks = sum.blocks.iter_mut().zip(one.blocks);
                blocks.for_each(|(sum, more)| *sum += more);
            }
        }
        sum
    }
}

impl Owner {
    pub(crate) fn merge(answers: Vec<Answer>) -> Self {
        let mut all = Self::default();
        for answer in answers {
            if let Answer::Owner(one) = answer {
                all.forwards.extend(one.forwards);
                all.block = all.block.or(one.block);
            }
        }
        all
    }
}

impl<E: Encapsulation> Path<E> {
    /// Applies a change of the NAT. `false` if it cannot be applied.
    pub(super) fn nat_step(&mut self, step: &NatStep) -> bool {
        let number = self.number;
        let Some(translator) = &mut self.nat else {
            return false;
        };
        match step {
            NatStep::Inside(inside) => translator.set_inside(inside.clone()),
            NatStep::Config(config) => {
                let share = translator.nat.config().share;
                return translator.nat.reconfigure(config.share(share)).is_ok();
            }
            NatStep::Ask(inquiry) => {
                let answer = translator.answer(number, &inquiry.question, inquiry.now);
                inquiry.put(number, answer);
            }
        }
        true
    }
}

impl Translator {
    fn answer(&mut self, path: usize, question: &Question, now: Instant) -> Answer {
        match *question {
            Question::Totals => Answer::Totals(Box::new(self.totals(path))),
            Question::Subscribers {
                path: of,
                cursor,
                most,
            } if usize::from(of) == path => self.subscribers(cursor, most),
            Question::Forwards { after, most } => {
                Answer::Forwards(self.forwards_after(path, after, most), most)
            }
            Question::Owner { external, port } => {
                let is_it = |one: &&Forward| (one.external, one.external_port) == (external, port);
                let forwards = self.reported(path).filter(is_it).copied().collect();
                Answer::Owner(Owner {
                    forwards,
                    block: self.nat.owner_of(external, port),
                })
            }
            Question::Forward {
                on,
                subscriber,
                wish,
            } if on.is_none_or(|on| usize::from(on) == path) => {
                let subscriber = subscriber.filter(|(on, ..)| usize::from(*on) == path);
                let subscriber = subscriber.map(|(_, place, tag)| (place, tag));
                Answer::Forward(self.forward(subscriber, &wish, now))
            }
            Question::Unforward((external, port, protocol)) => {
                let before = self.nat.unforward(protocol, external, port, now);
                Answer::Unforward(before)
            }
            Question::Subscribers { .. } | Question::Forward { .. } => Answer::Nothing,
        }
    }

    /// The forwardings that this path answers for: those of ports below the blocks are on all paths.
    fn reported(&self, path: usize) -> impl Iterator<Item = &Forward> {
        let first = self.nat.config().port_first;
        let all = self.nat.forwards();
        all.filter(move |one| path == 0 || one.external_port >= first)
    }

    fn totals(&self, path: usize) -> NatTotals {
        let mut counters = self.nat.counters();
        let forwards = self.reported(path).count() as u32;
        counters.mappings -= self.nat.forwards().len() as u32 - forwards;
        let (free, held, all) = self.nat.blocks();
        NatTotals {
            counters,
            blocks: [free, held, all],
            forwards,
        }
    }

    fn subscribers(&self, cursor: u32, most: usize) -> Answer {
        let mut next = Some(cursor);
        let mut views = Vec::new();
        while views.len() < most
            && let Some(cursor) = next
        {
            let found = self.nat.next_subscriber(cursor);
            next = found.map(|(next, _)| next);
            views.extend(found.map(|(_, view)| view));
        }
        Answer::Subscribers(views, next)
    }

    fn forwards_after(&self, path: usize, after: Option<ForwardKey>, most: usize) -> Vec<Forward> {
        let is_behind = |one: &&Forward| after.is_none_or(|after| key(one) > after);
        let behind = self.reported(path).filter(is_behind);
        behind.take(most).copied().collect()
    }
}

/// The external end of a forwarding.
pub(crate) fn key(forward: &Forward) -> ForwardKey {
    (forward.external, forward.external_port, forward.protocol)
}
