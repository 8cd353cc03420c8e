//! The one list of the disciplines. A new discipline is a module that declares itself (see [`crate::plan`]) and a line
//! here.
//!
//! Trees, policies, `show` and `graph` name no discipline. They use an [`Entry`], or the [`Plan`] within a [`Spec`].

use core::fmt::Debug;

use crate::plan::{Declared, Picture, Plan};
use crate::queue::{Given, Offer, Queue, Setting};
use crate::{codel, drr, fair, fifo, fq_codel, htb, pfifo_fast, prio, sfq, tbf};

/// Generates the enum [`Spec`], access to its plans, and [`entries`] from the list. Each line has a variant and its
/// plan.
macro_rules! disciplines {
    ($($(#[cfg($when:ident)])? $about:literal $name:ident($plan:ty);)*) => {
        /// A discipline and those below it, as plain data.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Spec {
            $($(#[cfg($when)])? #[doc = $about] $name($plan),)*
        }

        $($(#[cfg($when)])? impl From<$plan> for Spec {
            fn from(plan: $plan) -> Self {
                Self::$name(plan)
            }
        })*

        impl Spec {
            /// The plan, as its discipline's file declares it.
            pub(crate) fn plan(&self) -> &dyn Plan<Self> {
                match self {
                    $($(#[cfg($when)])? Self::$name(plan) => plan,)*
                }
            }
        }

        /// Every discipline, in the order in which messages list them.
        #[must_use]
        pub fn entries() -> Vec<Entry> {
            vec![$($(#[cfg($when)])? Entry::of::<$plan>(),)*]
        }
    };
}

disciplines! {
    "Per host, then per flow, with controlled delay." Fair(fair::Options);
    "A queue with controlled delay for each bucket of flows." FqCodel(fq_codel::Options);
    "One queue with controlled delay." Codel(codel::Options);
    "Stochastic fairness." Sfq(sfq::Options);
    "Three bands by DSCP." PfifoFast(pfifo_fast::Options);
    "First in, first out." Fifo(fifo::Limit);
    "Bands, each served while those before it are empty." Prio(PrioSpec);
    "Classes in turn." Drr(DrrSpec);
    "One rate." Tbf(TbfSpec);
    "A rate for each class." Htb(HtbSpec);
    #[cfg(test)] "A queue of two packets, which shows how a discipline plugs in." Pair(tests::pair::Options);
}

/// A [`prio::Prio`] and what is below it.
pub type PrioSpec = prio::PrioSpec<Spec>;
/// A [`drr::Drr`] and what is below it.
pub type DrrSpec = drr::DrrSpec<Spec>;
/// A class of a [`DrrSpec`].
pub type DrrClass = drr::DrrClass<Spec>;
/// A [`tbf::Tbf`] and what is below it.
pub type TbfSpec = tbf::TbfSpec<Spec>;
/// A [`htb::Htb`] and what is below it.
pub type HtbSpec = htb::HtbSpec<Spec>;

/// A discipline as the list has it.
#[derive(Debug)]
pub struct Entry {
    /// The names that it shows as its kind.
    pub kinds: &'static [&'static str],
    /// The queues of it that a policy can choose.
    pub choices: Vec<&'static dyn Choice>,
    /// What the graph draws.
    pub picture: Picture,
}

/// A queue that a policy can choose, whatever plan it is made from.
pub trait Choice: Debug + Sync {
    /// What the policy's reader knows of it.
    fn offer(&self) -> &Offer;

    /// The discipline that a policy means by it.
    fn spec(&self, given: &Given<'_>) -> Spec;
}

impl<P: Into<Spec> + Debug> Choice for Queue<P> {
    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn spec(&self, given: &Given<'_>) -> Spec {
        (self.plan)(given).into()
    }
}

impl Entry {
    fn of<P: Declared + Into<Spec> + Debug>() -> Self {
        let about = P::ABOUT;
        let choices = about.queues.iter().map(|queue| queue as &dyn Choice);
        Self {
            kinds: about.kinds,
            choices: choices.collect(),
            picture: about.picture,
        }
    }
}

impl Spec {
    /// The kind, as tc names it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.plan().kind()
    }

    /// The specs right below, with the number of the class that each belongs to.
    #[must_use]
    pub fn children(&self) -> Vec<(u16, &Spec)> {
        self.plan().children()
    }

    /// Packets that may wait in it and below it.
    #[must_use]
    pub fn packets_max(&self) -> u32 {
        let below = self.children().into_iter();
        let below = below.map(|(_, child)| child.packets_max());
        below.fold(self.plan().packets_max(), u32::saturating_add)
    }

    /// Bytes on the line of the longest packet that suits all disciplines: at the lowest rate of any class, it takes a
    /// millisecond at most, and none discards it for its length.
    #[must_use]
    pub fn longest(&self) -> u32 {
        let below = self.children().into_iter();
        let below = below.map(|(_, child)| child.longest());
        below.fold(self.plan().longest(), u32::min)
    }
}

/// Every queue that a policy can choose.
pub(crate) fn choices() -> Vec<&'static dyn Choice> {
    let entries = entries().into_iter();
    entries.flat_map(|entry| entry.choices).collect()
}

/// Every key of `[shape]` that some queue takes, each once.
pub(crate) fn settings() -> Vec<&'static Setting> {
    let mut settings: Vec<&'static Setting> = Vec::new();
    for choice in choices() {
        for setting in choice.offer().settings {
            if settings.iter().all(|known| known.name != setting.name) {
                settings.push(setting);
            }
        }
    }
    settings
}

/// How the graph draws a discipline of this kind; `None` if headend has none.
#[must_use]
pub fn picture(kind: &str) -> Option<Picture> {
    let mut entries = entries().into_iter();
    let entry = entries.find(|entry| entry.kinds.contains(&kind))?;
    Some(entry.picture)
}

#[cfg(test)]
mod tests;
