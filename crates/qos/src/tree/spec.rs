//! Which disciplines stand where: plain data.

use base::Instant;

use crate::classify::{Filter, Hash, KeySet, Map, Match};
use crate::codel::{self, Codel};
use crate::discipline::{Classify, Discipline};
use crate::drr::{self, Drr};
use crate::fair::{self, Fair};
use crate::fifo::{Fifo, Limit};
use crate::fq_codel::{self, FqCodel};
use crate::htb::{self, ClassOptions, Htb, Levels};
use crate::pfifo_fast::{self, Bands, PfifoFast};
use crate::prio::{Band, Prio};
use crate::sfq::{self, Sfq};
use crate::tbf::{self, Tbf};

/// Disciplines that may stand below one another.
const DEPTH_MAX: usize = 16;

/// A discipline, and those below it.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// First in, first out.
    Fifo(Limit),
    /// Three bands by DSCP.
    PfifoFast(pfifo_fast::Options),
    /// Stochastic fairness.
    Sfq(sfq::Options),
    /// One queue with controlled delay.
    Codel(codel::Options),
    /// A queue with controlled delay for each bucket of flows.
    FqCodel(fq_codel::Options),
    /// Per host, then per flow, with controlled delay.
    Fair(fair::Options),
    /// Bands, the first first.
    Prio {
        /// What is below: class 1 is the first.
        bands: Vec<Spec>,
        /// Who says the class; `None`, or where it says nothing: `priomap`.
        classifier: Option<Classifier>,
        /// The band by TOS octet.
        priomap: Bands,
    },
    /// Classes in turn.
    Drr {
        /// The classes.
        classes: Vec<DrrClass>,
        /// Who says the class. Packets of none are discarded.
        classifier: Classifier,
    },
    /// One rate.
    Tbf {
        /// The rate.
        options: tbf::Options,
        /// What is below.
        child: Box<Spec>,
    },
    /// A rate for each class.
    Htb(HtbSpec),
}

/// An [`Htb`] and what is below it.
#[derive(Debug, Clone, PartialEq)]
pub struct HtbSpec {
    /// Octets on the line of the longest packet.
    pub mtu: u32,
    /// The classes.
    pub classes: Vec<ClassOptions>,
    /// A discipline for each leaf, by minor.
    pub leaves: Vec<(u16, Spec)>,
    /// Who says the class, by minor.
    pub classifier: Option<Classifier>,
    /// The leaf of what is no class's; `None`: it passes by unshaped.
    pub default: Option<u16>,
    /// Packets that may wait to pass by.
    pub direct_limit: u32,
}

/// A class of [`Spec::Drr`].
#[derive(Debug, Clone, PartialEq)]
pub struct DrrClass {
    /// Its number: 0x10 is "1:10".
    pub minor: u16,
    /// Octets that it sends in its turn.
    pub quantum: u32,
    /// What is below.
    pub child: Spec,
}

/// Who says a packet's class.
#[derive(Debug, Clone, PartialEq)]
pub enum Classifier {
    /// Rules in order, the first that matches wins.
    Rules(Vec<(Match, u32)>),
    /// One key, calculated with.
    Map(Map),
    /// Keys, spread over classes.
    Hash {
        /// The keys.
        keys: KeySet,
        /// Number of classes.
        divisor: u32,
        /// Chooses the function.
        seed: u64,
        /// The first class.
        baseclass: u32,
    },
    /// The DSCP's band, counted from class 1.
    Bands(Bands),
}

/// Why no tree can be made of a [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The classes of an HTB do not fit together.
    #[error("htb {0:x}: {1}")]
    Htb(u16, htb::Error),
    /// A discipline that needs one below it has none.
    #[error("{0} {1:x}: has nothing below it")]
    Empty(&'static str, u16),
    /// Too many disciplines stand below one another.
    #[error("more than 16 disciplines stand below one another")]
    Depth,
    /// There are more disciplines than names.
    #[error("there are more than 65,534 disciplines")]
    Names,
}

impl Classifier {
    fn make(&self) -> Box<dyn Classify> {
        match self {
            Self::Rules(rules) => Box::new(Filter::new(rules.iter().copied())),
            Self::Map(map) => Box::new(*map),
            Self::Hash {
                keys,
                divisor,
                seed,
                baseclass,
            } => Box::new(Hash::new(*keys, *divisor, *seed, *baseclass)),
            Self::Bands(bands) => Box::new(*bands),
        }
    }
}

impl Spec {
    /// What is right below, with the number of the class that it stands in.
    #[must_use]
    pub fn children(&self) -> Vec<(u16, &Spec)> {
        match self {
            Self::Prio { bands, .. } => (1..).zip(bands).collect(),
            Self::Drr { classes, .. } => {
                let classes = classes.iter();
                classes.map(|class| (class.minor, &class.child)).collect()
            }
            Self::Tbf { child, .. } => vec![(1, child)],
            Self::Htb(htb) => {
                let leaves = htb.leaves.iter();
                leaves.map(|(minor, child)| (*minor, child)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The kind, as tc has it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fifo(Limit::Packets(_)) => "pfifo",
            Self::Fifo(Limit::Bytes(_)) => "bfifo",
            Self::PfifoFast(_) => "pfifo_fast",
            Self::Sfq(_) => "sfq",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Fair(_) => "fair",
            Self::Prio { .. } => "prio",
            Self::Drr { .. } => "drr",
            Self::Tbf { .. } => "tbf",
            Self::Htb(_) => "htb",
        }
    }

    /// Major numbers of this discipline and all below, parents first: 1 for the first, then the number of the class
    /// above where that is free, as people number them: "10:" in class "1:10".
    pub(super) fn majors(&self) -> Result<Vec<u16>, SpecError> {
        let mut majors = Majors {
            given: Vec::new(),
            used: vec![false; 1 << 16],
            next: 1,
        };
        majors.used[0] = true;
        majors.used[0xffff] = true;
        majors.give(self, 1, 0)?;
        Ok(majors.given)
    }
}

struct Majors {
    given: Vec<u16>,
    used: Vec<bool>,
    next: usize,
}

impl Majors {
    fn give(&mut self, spec: &Spec, wanted: u16, depth: usize) -> Result<(), SpecError> {
        if depth >= DEPTH_MAX {
            return Err(SpecError::Depth);
        }
        let major = if self.used[usize::from(wanted)] {
            let free = (self.next..1 << 16).find(|&major| !self.used[major]);
            self.next = free.ok_or(SpecError::Names)?;
            self.next as u16
        } else {
            wanted
        };
        self.used[usize::from(major)] = true;
        self.given.push(major);
        for (minor, child) in spec.children() {
            self.give(child, minor, depth + 1)?;
        }
        Ok(())
    }
}

/// What the disciplines of a tree are made with.
pub(super) struct Maker<'m> {
    pub(super) majors: core::slice::Iter<'m, u16>,
    pub(super) seed: u64,
    pub(super) now: Instant,
    /// Whether this tree takes the place of another, so that buckets of which nothing is known start in debt.
    pub(super) is_change: bool,
}

/// What stood in a place before: what it was made from, and it.
pub(super) type Former<'f> = Option<(&'f Spec, &'f dyn Discipline)>;

impl Maker<'_> {
    /// Makes a discipline and those below it.
    pub(super) fn make(
        &mut self,
        spec: &Spec,
        former: Former<'_>,
    ) -> Result<Box<dyn Discipline>, SpecError> {
        let major = self.majors.next().copied().unwrap_or(0);
        let former = former.filter(|(was, _)| was.kind() == spec.kind());
        let mut children = Vec::new();
        let former_children = former.map(|(was, discipline)| below(was, discipline));
        for (minor, child) in spec.children() {
            let same = former_children.iter().flatten();
            let mut same = same.filter(|(was, ..)| *was == minor);
            let was = same.next().map(|&(_, spec, discipline)| (spec, discipline));
            children.push((minor, self.make(child, was)?));
        }
        if children.is_empty() && matches!(spec, Spec::Prio { .. } | Spec::Drr { .. }) {
            return Err(SpecError::Empty(spec.kind(), major));
        }
        Ok(match spec {
            Spec::Fifo(limit) => Box::new(Fifo::new(*limit)),
            Spec::PfifoFast(options) => Box::new(PfifoFast::new(*options)),
            Spec::Sfq(options) => Box::new(Sfq::new(sfq::Options {
                seed: options.seed ^ self.seed,
                ..*options
            })),
            Spec::Codel(options) => Box::new(Codel::new(*options)),
            Spec::FqCodel(options) => Box::new(FqCodel::new(fq_codel::Options {
                seed: options.seed ^ self.seed,
                ..*options
            })),
            Spec::Fair(options) => Box::new(Fair::new(
                options,
                self.seed ^ u64::from(major).rotate_left(32),
            )),
            Spec::Prio {
                classifier,
                priomap,
                ..
            } => {
                let named = children.into_iter().map(|(minor, child)| Band {
                    name: name(major, minor),
                    child,
                });
                let classifier = classifier.as_ref().map(Classifier::make);
                Box::new(Prio::new(named.collect(), classifier, *priomap))
            }
            Spec::Drr {
                classes,
                classifier,
            } => {
                let named = children.into_iter().zip(classes);
                let named = named.map(|((minor, child), class)| drr::Class {
                    name: name(major, minor),
                    number: minor,
                    quantum: class.quantum,
                    child,
                });
                Box::new(Drr::new(named.collect(), classifier.make()))
            }
            Spec::Tbf { options, .. } => {
                let empty = SpecError::Empty("tbf", major);
                let (_, child) = children.pop().ok_or(empty)?;
                let kept = former.and_then(|(_, was)| was.levels(self.now).pop());
                let kept = kept.map(|(_, _, level)| level);
                let level = kept.or(self.is_change.then_some(0));
                Box::new(Tbf::new(options, child, level, self.now))
            }
            Spec::Htb(htb) => self.make_htb(major, htb, children, former)?,
        })
    }

    fn make_htb(
        &self,
        major: u16,
        spec: &HtbSpec,
        leaves: Vec<(u16, Box<dyn Discipline>)>,
        former: Former<'_>,
    ) -> Result<Box<dyn Discipline>, SpecError> {
        let options = htb::Options {
            major,
            mtu: spec.mtu,
            classes: spec.classes.clone(),
            default: spec.default,
            direct_limit: spec.direct_limit,
        };
        let levels = if self.is_change {
            let levels = former.map(|(_, was)| was.levels(self.now));
            let levels = levels.into_iter().flatten();
            Levels::Kept(
                levels
                    .map(|(minor, rate, ceil)| (minor, (rate, ceil)))
                    .collect(),
            )
        } else {
            Levels::Full
        };
        let classifier = spec.classifier.as_ref().map(Classifier::make);
        let htb = Htb::new(&options, leaves, classifier, &levels, self.now);
        Ok(Box::new(htb.map_err(|error| SpecError::Htb(major, error))?))
    }
}

/// What is below a discipline: the class's number, what it was made from, and it.
pub(super) fn below<'d>(
    spec: &'d Spec,
    discipline: &'d dyn Discipline,
) -> Vec<(u16, &'d Spec, &'d dyn Discipline)> {
    let disciplines = discipline.children();
    let both = spec.children().into_iter().zip(disciplines);
    both.map(|((minor, spec), (_, discipline))| (minor, spec, discipline))
        .collect()
}

/// A class's name.
pub(super) fn name(major: u16, minor: u16) -> String {
    format!("{major:x}:{minor:x}")
}
