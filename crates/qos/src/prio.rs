//! Bands in order of priority: a band sends only while those before it have nothing to send. tc's `prio`.

use base::Instant;

use crate::account::Account;
use crate::classifier::{Classifier, Rule, name};
use crate::classify::Bands;
use crate::discipline::{Backlog, Class, Classify, Discipline, Statistics};
use crate::packet::{Id, Pool};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};

/// One band.
#[derive(Debug)]
pub struct Band {
    /// Its class's handle: "1:1".
    pub name: String,
    /// The discipline that holds its packets.
    pub child: Box<dyn Discipline>,
}

/// Bands, highest priority first.
#[derive(Debug)]
pub struct Prio {
    bands: Vec<Band>,
    filter: Option<Box<dyn Classify>>,
    priomap: Bands,
    account: Account,
}

impl Prio {
    /// `filter` chooses a packet's band; its class 1 is the first band. If it chooses none, `priomap` does by the TOS
    /// octet; a band beyond the last counts as the last. Without any band all packets are discarded.
    #[must_use]
    pub fn new(bands: Vec<Band>, filter: Option<Box<dyn Classify>>, priomap: Bands) -> Self {
        Self {
            bands,
            filter,
            priomap,
            account: Account::default(),
        }
    }

    fn band(&self, pool: &Pool, id: Id) -> Option<usize> {
        let filter = self.filter.as_ref();
        let class = filter.and_then(|filter| filter.class(pool.keys(id)));
        let number = usize::from(class.unwrap_or(0) as u16);
        if (1..=self.bands.len()).contains(&number) {
            return Some(number - 1);
        }
        let band = self.priomap.band(pool.traffic_class(id));
        let last = self.bands.len().checked_sub(1)?;
        Some(last.min(band.into()))
    }
}

/// The plan of a [`Prio`].
#[derive(Debug, Clone, PartialEq)]
pub struct PrioSpec<S> {
    /// The plans below it: class 1 is the first.
    pub bands: Vec<S>,
    /// Chooses the class. `priomap` does if there is no classifier, or if it chooses no band.
    pub classifier: Option<Classifier>,
    /// The band by TOS octet.
    pub priomap: Bands,
}

impl<S: 'static> Declared for PrioSpec<S> {
    const ABOUT: About<Self> = About {
        kinds: &["prio"],
        queues: &[],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for PrioSpec<S> {
    fn kind(&self) -> &'static str {
        "prio"
    }

    fn options(&self) -> String {
        format!("bands {}", self.bands.len())
    }

    fn packets_max(&self) -> u32 {
        0
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        if make.children.is_empty() {
            return Err(Unfit::empty());
        }
        let bands = make.children.into_iter().map(|(minor, child)| Band {
            name: name(make.major, minor),
            child,
        });
        let filter = self.classifier.as_ref().map(Classifier::make);
        Ok(Box::new(Prio::new(bands.collect(), filter, self.priomap)))
    }

    fn children(&self) -> Vec<(u16, &S)> {
        (1..).zip(&self.bands).collect()
    }

    fn rules(&self, major: u16) -> Vec<Rule> {
        let classifier = self.classifier.iter();
        let mut rules: Vec<Rule> = classifier.flat_map(|chosen| chosen.rules(major)).collect();
        rules.push(Rule {
            what: "else by dscp".to_owned(),
            class: format!("{} and on", name(major, 1)),
        });
        rules
    }
}

impl Discipline for Prio {
    fn kind(&self) -> &'static str {
        "prio"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        let Some(band) = self.band(pool, id) else {
            self.account.discard(pool, id);
            return false;
        };
        let child = &mut *self.bands[band].child;
        self.account.enqueue(child, pool, id, now)
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        let Some(band) = self.band(pool, id) else {
            self.account.discard(pool, id);
            return false;
        };
        let child = &mut *self.bands[band].child;
        self.account.restore(child, pool, id, now)
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        for band in &mut self.bands {
            if let Some(id) = self.account.dequeue(&mut *band.child, pool, now) {
                self.account.send(pool.length(id));
                return Some(id);
            }
        }
        None
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        let times = self.bands.iter();
        times.filter_map(|band| band.child.next_time(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.account.backlog
    }

    fn statistics(&self) -> Statistics {
        self.account.statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        for band in &mut self.bands {
            band.child.drain(pool, into);
        }
        self.account.backlog = Backlog::default();
    }

    fn classes(&self) -> Vec<Class> {
        let classes = self.bands.iter().map(|band| Class {
            name: band.name.clone(),
            parent: None,
            options: String::new(),
            statistics: band.child.statistics(),
            backlog: band.child.backlog(),
            details: Vec::new(),
        });
        classes.collect()
    }

    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        let children = self.bands.iter();
        children
            .map(|band| (band.name.clone(), &*band.child))
            .collect()
    }
}
