//! The path of a packet through a tree, derived from the tree's specification.

use qos::Classify;
use qos::classify::{Hash, Match};
use qos::tree::{Classifier, DrrSpec, HtbSpec, PrioSpec, Spec, TbfSpec};
use wire::flow::Keys;

use crate::trees::MTU;

/// A rate that a packet passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gate {
    /// The places above the rate, its class or 0, and whether it is a peak rate.
    pub(crate) name: (Vec<u16>, u16, bool),
    pub(crate) rate_bps: u64,
    /// Burst: bytes that may leave at once.
    pub(crate) burst: u32,
    /// The bucket's size in bytes.
    pub(crate) size: u32,
    /// Bytes that disciplines above may have dequeued but not yet released.
    pub(crate) held: u32,
}

/// A band that a packet is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InBand {
    /// The places above the band.
    pub(crate) place: Vec<u16>,
    pub(crate) band: u16,
    /// Whether no discipline above dequeues packets before they leave.
    pub(crate) exact: bool,
    /// How many rates the packet passes above the band.
    pub(crate) gates: usize,
}

/// The path of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) gates: Vec<Gate>,
    pub(crate) bands: Vec<InBand>,
    /// The classes from the root down.
    pub(crate) place: Vec<u16>,
    held: u32,
}

impl Way {
    pub(crate) fn of(spec: &Spec, keys: &Keys) -> Self {
        let mut way = Self::default();
        way.follow(spec, keys);
        way
    }

    fn follow(&mut self, spec: &Spec, keys: &Keys) {
        match spec {
            Spec::Prio(PrioSpec {
                bands,
                classifier,
                priomap,
            }) => {
                let said = classifier.as_ref().and_then(|who| class(who, keys));
                let said = said
                    .map(usize::from)
                    .filter(|class| (1..=bands.len()).contains(class));
                let by_octet = || usize::from(priomap.band(keys.traffic_class)) + 1;
                let band = said.unwrap_or_else(|| by_octet().min(bands.len()));
                self.bands.push(InBand {
                    place: self.place.clone(),
                    band: band as u16,
                    exact: self.held == 0,
                    gates: self.gates.len(),
                });
                self.down(band as u16, &bands[band - 1], keys);
            }
            Spec::Drr(DrrSpec {
                classes,
                classifier,
            }) => {
                let number = class(classifier, keys).expect("each packet has a class");
                let mut classes = classes.iter();
                let found = classes.find(|class| class.minor == number);
                self.held += MTU;
                self.down(number, &found.expect("it is there").child, keys);
            }
            Spec::Tbf(TbfSpec { options, child }) => {
                self.gate(0, false, options.rate_bps, options.burst, options.burst);
                if let Some(peak) = options.peak {
                    self.gate(0, true, peak.rate_bps, peak.mtu, peak.mtu);
                }
                self.held += MTU;
                self.down(1, child, keys);
            }
            Spec::Htb(htb) => self.through(htb, keys),
            _ => {}
        }
    }

    fn through(&mut self, htb: &HtbSpec, keys: &Keys) {
        let said = htb.classifier.as_ref().and_then(|who| class(who, keys));
        let leaf = |minor: u16| htb.leaves.iter().find(|leaf| leaf.0 == minor);
        let leaf = said.and_then(leaf).or(htb.default.and_then(leaf));
        let Some((minor, child)) = leaf else {
            // The packet bypasses the classes.
            self.place.push(0);
            return;
        };
        let mut next = Some(*minor);
        while let Some(minor) = next {
            let mut classes = htb.classes.iter();
            let class = classes.find(|class| class.minor == minor);
            let class = class.expect("it is there");
            self.gate(
                minor,
                false,
                class.ceil_bps,
                class.cburst,
                class.cburst - htb.mtu,
            );
            next = class.parent;
        }
        self.down(*minor, child, keys);
    }

    fn gate(&mut self, class: u16, is_peak: bool, rate_bps: u64, burst: u32, size: u32) {
        self.gates.push(Gate {
            name: (self.place.clone(), class, is_peak),
            rate_bps,
            burst,
            size,
            held: self.held,
        });
    }

    fn down(&mut self, class: u16, child: &Spec, keys: &Keys) {
        self.place.push(class);
        self.follow(child, keys);
    }
}

fn class(classifier: &Classifier, keys: &Keys) -> Option<u16> {
    let matching = |rules: &[(Match, u32)]| {
        let mut rules = rules.iter();
        rules
            .find(|(rule, _)| rule.matches(keys))
            .map(|(_, class)| *class)
    };
    let class = match classifier {
        Classifier::Rules(rules) => matching(rules),
        Classifier::Map(map) => Some(map.class(keys)),
        Classifier::Hash {
            keys: set,
            divisor,
            seed,
            baseclass,
        } => Some(Hash::new(*set, *divisor, *seed, *baseclass).class(keys)),
        Classifier::Bands(bands) => bands.class(keys),
    };
    class.map(|class| class as u16)
}
