//! The plan of an [`Htb`].

use super::{ClassOptions, Htb, Levels, Options};
use crate::classifier::{Classifier, Rule, name};
use crate::discipline::Discipline;
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::units;

/// What an [`Htb`] is made from, and what is below it.
#[derive(Debug, Clone, PartialEq)]
pub struct HtbSpec<S> {
    /// Bytes on the line of the longest packet.
    pub mtu: u32,
    /// The classes.
    pub classes: Vec<ClassOptions>,
    /// A discipline for each leaf, by minor.
    pub leaves: Vec<(u16, S)>,
    /// Chooses the class, by minor.
    pub classifier: Option<Classifier>,
    /// The leaf of packets without a class. `None`: they bypass all classes, unshaped.
    pub default: Option<u16>,
    /// Packets that may wait to bypass the classes.
    pub direct_limit: u32,
}

impl<S: 'static> Declared for HtbSpec<S> {
    const ABOUT: About<Self> = About {
        kinds: &["htb"],
        queues: &[],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for HtbSpec<S> {
    fn kind(&self) -> &'static str {
        "htb"
    }

    fn options(&self) -> String {
        let default = self.default.unwrap_or(0);
        format!("default {default:#x} direct_qlen {}", self.direct_limit)
    }

    fn packets_max(&self) -> u32 {
        self.direct_limit
    }

    fn longest(&self) -> u32 {
        let rates = self.classes.iter().map(|class| class.rate_bps);
        rates
            .map(units::bytes_in_a_millisecond)
            .min()
            .unwrap_or(u32::MAX)
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        let options = Options {
            major: make.major,
            mtu: self.mtu,
            classes: self.classes.clone(),
            default: self.default,
            direct_limit: self.direct_limit,
        };
        let levels = if make.is_change {
            let levels = make.levels.into_iter();
            let levels = levels.map(|(minor, rate, ceil)| (minor, (rate, ceil)));
            Levels::Kept(levels.collect())
        } else {
            Levels::Full
        };
        let classifier = self.classifier.as_ref().map(Classifier::make);
        let htb = Htb::new(&options, make.children, classifier, &levels, make.now);
        Ok(Box::new(htb.map_err(|error| Unfit(error.to_string()))?))
    }

    fn children(&self) -> Vec<(u16, &S)> {
        let leaves = self.leaves.iter();
        leaves.map(|(minor, child)| (*minor, child)).collect()
    }

    fn rules(&self, major: u16) -> Vec<Rule> {
        let classifier = self.classifier.iter();
        let mut rules: Vec<Rule> = classifier.flat_map(|chosen| chosen.rules(major)).collect();
        let default = self.default.map(|minor| name(major, minor));
        rules.push(Rule {
            what: "else".to_owned(),
            class: default.unwrap_or_else(|| "unshaped".to_owned()),
        });
        rules
    }
}
