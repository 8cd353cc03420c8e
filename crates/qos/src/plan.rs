//! What a discipline's file declares: its plan (the options it is made from), and what the rest of headend needs to
//! know of that plan.
//!
//! Start with [`Declared`] and [`Plan`]. The type `S` stands for the plan of any discipline. A discipline with
//! children holds plans of type `S`, so its file need not know the list in [`crate::registry`].

use core::fmt::Debug;

use base::Instant;

use crate::classifier::Rule;
use crate::discipline::Discipline;
use crate::queue::Queue;

/// What a discipline declares once, beside its [`Plan`].
#[derive(Debug)]
pub struct About<P: 'static> {
    /// The names that its disciplines show as [`Discipline::kind`].
    pub kinds: &'static [&'static str],
    /// The queues that a policy can choose; none for disciplines that only hold others.
    pub queues: &'static [Queue<P>],
    /// What `headend qos graph` draws.
    pub picture: Picture,
}

/// How `headend qos graph` draws a discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Picture {
    /// Whether tc lists the flows of the kernel's discipline as its classes. tc does not count what such a class sent,
    /// and filters may be attached to the discipline while no flow is there.
    pub has_flow_classes: bool,
}

/// A plan with the declaration of its discipline.
pub trait Declared: Sized + 'static {
    /// The declaration.
    const ABOUT: About<Self>;
}

/// Options of one discipline, and the plans `S` of those below it.
pub trait Plan<S> {
    /// The kind, as tc names it.
    fn kind(&self) -> &'static str;

    /// The options, as tc prints them.
    fn options(&self) -> String;

    /// Packets that may wait in the discipline itself, not counting those below it.
    fn packets_max(&self) -> u32;

    /// Bytes on the line of the longest packet that suits the discipline itself: it does not keep others waiting for
    /// more than a millisecond, and is not discarded for its length.
    fn longest(&self) -> u32 {
        u32::MAX
    }

    /// Makes the discipline, empty.
    ///
    /// # Errors
    /// The options do not fit together, or not with what is below.
    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit>;

    /// The plans right below, with the number of the class that each belongs to.
    fn children(&self) -> Vec<(u16, &S)> {
        Vec::new()
    }

    /// Which packets go to which class, in the order in which the rules are tried. `major` is the discipline's number.
    fn rules(&self, _major: u16) -> Vec<Rule> {
        Vec::new()
    }
}

/// The context in which a discipline is made.
#[derive(Debug)]
pub struct Make {
    /// Its number, as in "1:".
    pub major: u16,
    /// Chooses what is hashed where.
    pub seed: u64,
    /// The time.
    pub now: Instant,
    /// Whether the tree replaces another. Buckets without a known level then start in debt.
    pub is_change: bool,
    /// [`Discipline::levels`] of the discipline that this one replaces.
    pub levels: Vec<(u16, i64, i64)>,
    /// The disciplines below it, with their class's number, in the order of [`Plan::children`].
    pub children: Vec<(u16, Box<dyn Discipline>)>,
}

/// Why no discipline can be made of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit(pub String);

impl Unfit {
    /// A discipline that needs one below it has none.
    #[must_use]
    pub fn empty() -> Self {
        Self("has nothing below it".to_owned())
    }
}
