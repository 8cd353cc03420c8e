//! Deficit round robin: classes take turns, each for its quantum of bytes. tc's `drr`.
//!
//! M. Shreedhar, G. Varghese, "Efficient Fair Queuing using Deficit Round Robin", 1995. As in Linux, a class whose
//! next packet exceeds its deficit passes its turn on and its deficit grows by the quantum. To know the packet's
//! length, the discipline takes it from the class's queue first and holds it.

use base::Instant;

use crate::account::Account;
use crate::classifier::{Classifier, Rule, name};
use crate::discipline::{self, Backlog, Classify, Discipline, Statistics};
use crate::packet::{Id, Pool};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::round::{Link, Member, Round};

/// Options of a class.
#[derive(Debug)]
pub struct Class {
    /// Its handle: "1:10".
    pub name: String,
    /// Its minor number: the part of the handle after the colon, in hexadecimal there.
    pub number: u16,
    /// Bytes on the line for each turn; 0 counts as 1. Give at least the largest packet's length, or turns pass
    /// without a packet.
    pub quantum: u32,
    /// The discipline that holds its packets.
    pub child: Box<dyn Discipline>,
}

/// No class has this number.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Turn {
    class: Class,
    deficit: u64,
    link: Link,
    /// The next packet, already taken from the child, and its length.
    head: Option<(Id, u32)>,
    statistics: Statistics,
}

impl Member for Turn {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Classes served in turn.
#[derive(Debug)]
pub struct Drr {
    classes: Vec<Turn>,
    /// The index of the class with each number.
    by_number: Vec<u32>,
    classifier: Box<dyn Classify>,
    round: Round,
    account: Account,
}

impl Drr {
    /// `classifier` chooses a packet's class. Of two classes with the same number the last one counts. A packet
    /// without a class is discarded.
    #[must_use]
    pub fn new(classes: Vec<Class>, classifier: Box<dyn Classify>) -> Self {
        let numbers = classes.iter().map(|class| usize::from(class.number) + 1);
        let mut by_number = vec![NONE; numbers.max().unwrap_or(0)];
        for (index, class) in (0..).zip(&classes) {
            by_number[usize::from(class.number)] = index;
        }
        let classes = classes.into_iter().map(|class| Turn {
            class: Class {
                quantum: class.quantum.max(1),
                ..class
            },
            deficit: 0,
            link: Link::default(),
            head: None,
            statistics: Statistics::default(),
        });
        Self {
            classes: classes.collect(),
            by_number,
            classifier,
            round: Round::default(),
            account: Account::default(),
        }
    }

    /// Gives a packet to its class; `limited` says whether the class's limit applies.
    fn put(&mut self, pool: &mut Pool, id: Id, now: Instant, limited: bool) -> bool {
        let chosen = self.classifier.class(pool.keys(id));
        let number = chosen.map(|class| usize::from(class as u16));
        let index = number.and_then(|number| self.by_number.get(number));
        let index = index.copied().unwrap_or(NONE);
        let Some(turn) = self.classes.get_mut(index as usize) else {
            self.account.discard(pool, id);
            return false;
        };
        let child = &mut *turn.class.child;
        let lost = self.account.statistics.dropped;
        let taken = if limited {
            self.account.enqueue(child, pool, id, now)
        } else {
            self.account.restore(child, pool, id, now)
        };
        turn.statistics.dropped += self.account.statistics.dropped - lost;
        if !turn.link.is_waiting() && child.backlog().packets > 0 {
            turn.deficit = turn.class.quantum.into();
            self.round.push(&mut self.classes, index);
        }
        taken
    }
}

/// The plan of a [`Drr`].
#[derive(Debug, Clone, PartialEq)]
pub struct DrrSpec<S> {
    /// The classes.
    pub classes: Vec<DrrClass<S>>,
    /// Chooses the class; packets without one are discarded.
    pub classifier: Classifier,
}

/// A class of a [`DrrSpec`].
#[derive(Debug, Clone, PartialEq)]
pub struct DrrClass<S> {
    /// Its number: 0x10 is "1:10".
    pub minor: u16,
    /// Bytes for each turn.
    pub quantum: u32,
    /// The plan of the discipline below it.
    pub child: S,
}

impl<S: 'static> Declared for DrrSpec<S> {
    const ABOUT: About<Self> = About {
        kinds: &["drr"],
        queues: &[],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for DrrSpec<S> {
    fn kind(&self) -> &'static str {
        "drr"
    }

    fn options(&self) -> String {
        String::new()
    }

    fn packets_max(&self) -> u32 {
        0
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        if make.children.is_empty() {
            return Err(Unfit::empty());
        }
        let classes = make.children.into_iter().zip(&self.classes);
        let classes = classes.map(|((minor, child), class)| Class {
            name: name(make.major, minor),
            number: minor,
            quantum: class.quantum,
            child,
        });
        Ok(Box::new(Drr::new(
            classes.collect(),
            self.classifier.make(),
        )))
    }

    fn children(&self) -> Vec<(u16, &S)> {
        let classes = self.classes.iter();
        classes.map(|class| (class.minor, &class.child)).collect()
    }

    fn rules(&self, major: u16) -> Vec<Rule> {
        self.classifier.rules(major)
    }
}

impl Discipline for Drr {
    fn kind(&self) -> &'static str {
        "drr"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.put(pool, id, now, true)
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.put(pool, id, now, false)
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        let mut held_back = 0;
        while let Some(index) = self.round.first() {
            let turn = &mut self.classes[index as usize];
            let child = &mut *turn.class.child;
            if turn.head.is_none() {
                let lost = self.account.statistics.dropped;
                let head = self.account.dequeue(child, pool, now);
                turn.head = head.map(|id| (id, pool.length(id)));
                turn.statistics.dropped += self.account.statistics.dropped - lost;
            }
            let Some((id, length)) = turn.head else {
                let waits = child.backlog().packets > 0;
                self.round.pop(&mut self.classes);
                if waits {
                    self.round.push(&mut self.classes, index);
                    held_back += 1;
                    if held_back == self.round.length() {
                        return None;
                    }
                }
                continue;
            };
            if u64::from(length) > turn.deficit {
                turn.deficit += u64::from(turn.class.quantum);
                self.round.pop(&mut self.classes);
                self.round.push(&mut self.classes, index);
                held_back = 0;
                continue;
            }
            turn.deficit -= u64::from(length);
            turn.head = None;
            turn.statistics.count_sent(length);
            self.account.send(length);
            if child.backlog().packets == 0 {
                self.round.pop(&mut self.classes);
            }
            return Some(id);
        }
        None
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        let time = |turn: &Turn| match turn.head {
            Some(_) => Some(now),
            None => turn.class.child.next_time(now),
        };
        let first = &self.classes[self.round.first()? as usize];
        match time(first) {
            Some(at) if at <= now => Some(at),
            _ => self.classes.iter().filter_map(time).min(),
        }
    }

    fn backlog(&self) -> Backlog {
        self.account.backlog
    }

    fn statistics(&self) -> Statistics {
        self.account.statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        while let Some(index) = self.round.pop(&mut self.classes) {
            let turn = &mut self.classes[index as usize];
            into.extend(turn.head.take().map(|(id, _)| id));
            turn.class.child.drain(pool, into);
        }
        self.account.backlog = Backlog::default();
    }

    fn classes(&self) -> Vec<discipline::Class> {
        let classes = self.classes.iter().map(|turn| {
            let mut backlog = turn.class.child.backlog();
            if let Some((_, length)) = turn.head {
                backlog.add(length);
            }
            discipline::Class {
                name: turn.class.name.clone(),
                parent: None,
                options: format!("quantum {}", turn.class.quantum),
                statistics: turn.statistics,
                backlog,
                details: vec![("deficit", turn.deficit.try_into().unwrap_or(i64::MAX))],
            }
        });
        classes.collect()
    }

    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        let children = self.classes.iter();
        children
            .map(|turn| (turn.class.name.clone(), &*turn.class.child))
            .collect()
    }
}
