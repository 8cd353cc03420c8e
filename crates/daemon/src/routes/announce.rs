//! The networks that we originate in BGP: configured networks, pools, and routes to subscribers,
//! which are replaced by aggregates where those are configured.

use hashbrown::{HashMap, HashSet};
use wire::bgp::Prefix;

use crate::config::Announce;

/// Announced networks, with a count of the reasons for each.
#[derive(Debug, Default)]
pub(super) struct Announced {
    aggregates: Vec<Prefix>,
    /// Number of reasons to announce each network.
    reasons: HashMap<Prefix, u32>,
    /// Networks that are routed to subscribers.
    leading: HashSet<Prefix>,
}

/// A change to announce to the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Originate(Prefix),
    Retract(Prefix),
}

impl Announced {
    pub(super) fn new(announce: &Announce) -> Self {
        Self {
            aggregates: announce.aggregates.clone(),
            ..Self::default()
        }
    }

    /// Records that a network leads to a subscriber, or no longer does.
    pub(super) fn leads(&mut self, network: Prefix, leads: bool) -> Option<Step> {
        let is_new = match leads {
            true => self.leading.insert(network),
            false => self.leading.remove(&network),
        };
        if !is_new {
            return None;
        }
        let shown = self.shown_as(network);
        match leads {
            true => self.add(shown),
            false => self.remove(shown),
        }
    }

    /// Adds a reason to announce a network.
    pub(super) fn add(&mut self, network: Prefix) -> Option<Step> {
        let reasons = self.reasons.entry(network).or_insert(0);
        *reasons += 1;
        (*reasons == 1).then_some(Step::Originate(network))
    }

    /// Removes one reason added before.
    pub(super) fn remove(&mut self, network: Prefix) -> Option<Step> {
        let reasons = self.reasons.get_mut(&network)?;
        *reasons -= 1;
        if *reasons > 0 {
            return None;
        }
        self.reasons.remove(&network);
        Some(Step::Retract(network))
    }

    /// Forgets the networks that lead to subscribers, because they are not announced any more.
    pub(super) fn forget_leading(&mut self) -> Vec<Step> {
        let leading: Vec<Prefix> = self.leading.iter().copied().collect();
        let forget = |network| self.leads(network, false);
        leading.into_iter().filter_map(forget).collect()
    }

    /// Replaces the aggregates.
    pub(super) fn set_aggregates(&mut self, aggregates: &[Prefix]) -> Vec<Step> {
        if self.aggregates == aggregates {
            return Vec::new();
        }
        let leading: Vec<Prefix> = self.leading.iter().copied().collect();
        let before: Vec<Prefix> = leading
            .iter()
            .map(|&network| self.shown_as(network))
            .collect();
        self.aggregates = aggregates.to_vec();
        let mut steps = Vec::new();
        // New networks are announced before old ones are withdrawn, so that peers always have a
        // route.
        for &network in &leading {
            let shown = self.shown_as(network);
            steps.extend(self.add(shown));
        }
        steps.extend(before.into_iter().filter_map(|shown| self.remove(shown)));
        steps
    }

    /// Number of announced networks.
    pub(super) fn len(&self) -> usize {
        self.reasons.len()
    }

    /// The longest aggregate that contains the network, or the network itself.
    fn shown_as(&self, network: Prefix) -> Prefix {
        let fits = |aggregate: &&Prefix| aggregate.contains(network);
        let longest = self
            .aggregates
            .iter()
            .filter(fits)
            .max_by_key(|one| one.len());
        longest.copied().unwrap_or(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_subscribers_are_withdrawn_when_they_are_no_longer_announced() {
        let mut announced = announced(&["10.0.0.0/8"]);
        announced.add(prefix("198.51.100.0/24"));
        for network in ["10.0.0.1/32", "10.0.0.2/32", "192.0.2.1/32"] {
            announced.leads(prefix(network), true);
        }
        let steps = announced.forget_leading();
        let expected = ["10.0.0.0/8", "192.0.2.1/32"].map(|text| Step::Retract(prefix(text)));
        assert!(
            steps.len() == 2 && expected.iter().all(|step| steps.contains(step)),
            "{steps:?}"
        );
        assert_eq!(announced.len(), 1);
        // A subscriber that leaves later changes nothing.
        assert_eq!(announced.leads(prefix("10.0.0.1/32"), false), None);
    }

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn announced(aggregates: &[&str]) -> Announced {
        Announced::new(&Announce {
            aggregates: aggregates.iter().map(|text| prefix(text)).collect(),
            ..Announce::default()
        })
    }

    #[test]
    fn an_aggregate_is_there_while_something_lies_in_it() {
        let mut announced = announced(&["10.64.0.0/16", "10.64.7.0/24"]);
        let [one, two] = ["10.64.0.1/32", "10.64.9.0/24"].map(prefix);
        let whole = prefix("10.64.0.0/16");
        assert_eq!(announced.leads(one, true), Some(Step::Originate(whole)));
        assert_eq!(announced.leads(two, true), None);
        assert_eq!(announced.leads(two, true), None, "told twice");
        assert_eq!(announced.leads(one, false), None);
        assert_eq!(announced.leads(two, false), Some(Step::Retract(whole)));
        assert_eq!(announced.leads(two, false), None);
        let longer = announced.leads(prefix("10.64.7.9/32"), true);
        assert_eq!(longer, Some(Step::Originate(prefix("10.64.7.0/24"))));
        let outside = announced.leads(prefix("10.65.0.1/32"), true);
        assert_eq!(outside, Some(Step::Originate(prefix("10.65.0.1/32"))));
    }

    #[test]
    fn what_is_announced_for_two_reasons_stays_while_one_is_left() {
        let mut announced = announced(&["10.64.0.0/16"]);
        let pool = prefix("10.64.0.0/16");
        assert_eq!(announced.add(pool), Some(Step::Originate(pool)));
        assert_eq!(announced.leads(prefix("10.64.0.1/32"), true), None);
        assert_eq!(announced.remove(pool), None);
        assert_eq!(announced.len(), 1);
        let last = announced.leads(prefix("10.64.0.1/32"), false);
        assert_eq!(last, Some(Step::Retract(pool)));
    }

    #[test]
    fn other_aggregates_replace_what_they_replace_and_touch_nothing_else() {
        let mut announced = announced(&["10.64.0.0/16"]);
        for one in ["10.64.0.1/32", "10.64.0.2/32", "10.65.0.1/32"] {
            announced.leads(prefix(one), true);
        }
        let mut steps = announced.set_aggregates(&[prefix("10.64.0.0/24")]);
        steps.sort_by_key(|step| matches!(step, Step::Retract(_)));
        let expected = [
            Step::Originate(prefix("10.64.0.0/24")),
            Step::Retract(prefix("10.64.0.0/16")),
        ];
        assert_eq!(steps, expected);
        assert_eq!(announced.set_aggregates(&[prefix("10.64.0.0/24")]), []);
    }
}
