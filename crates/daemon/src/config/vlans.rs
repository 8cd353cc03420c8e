//! VLAN ids that an interface's subscribers may use: `untagged`, `100`, `100-199`, `300.1-4094`, `*.*`.

use core::ops::RangeInclusive;
use std::fmt;
use std::str::FromStr;

use wire::pppoe::Vlans;

/// Ids that IEEE 802.1Q leaves to operators.
const IDS: RangeInclusive<u16> = 1..=4094;

/// Ids of one tag.
type Ids = RangeInclusive<u16>;

/// A set of tags: none, one, or an outer and an inner one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanRange {
    outer: Option<Ids>,
    inner: Option<Ids>,
}

impl VlanRange {
    /// Frames without tags.
    pub const UNTAGGED: Self = Self {
        outer: None,
        inner: None,
    };

    /// The set of these tags alone.
    #[must_use]
    pub fn of(vlans: Vlans) -> Self {
        let only = |id: u16| id..=id;
        Self {
            outer: vlans.outer().map(only),
            inner: vlans.inner().map(only),
        }
    }

    /// Whether a frame's tags are in the set.
    #[must_use]
    pub fn contains(&self, vlans: Vlans) -> bool {
        let matches = |ids: &Option<Ids>, id: Option<u16>| match (ids, id) {
            (Some(ids), Some(id)) => ids.contains(&id),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        matches(&self.outer, vlans.outer()) && matches(&self.inner, vlans.inner())
    }

    /// The ids of the outer and of the inner tag.
    #[must_use]
    pub fn ids(&self) -> edge::VlanIds {
        [self.outer.clone(), self.inner.clone()]
    }

    /// The tags, if the set has only one element.
    #[must_use]
    pub fn single(&self) -> Option<Vlans> {
        let only = |ids: &Ids| (ids.start() == ids.end()).then_some(*ids.start());
        match (&self.outer, &self.inner) {
            (None, _) => Some(Vlans::NONE),
            (Some(outer), None) => Some(Vlans::one(only(outer)?)),
            (Some(outer), Some(inner)) => Some(Vlans::two(only(outer)?, only(inner)?)),
        }
    }
}

impl FromStr for VlanRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "untagged" {
            return Ok(Self::UNTAGGED);
        }
        let (outer, inner) = match text.split_once('.') {
            Some((outer, inner)) => (outer, Some(inner)),
            None => (text, None),
        };
        let wrong = || {
            format!(
                "\"{text}\" is not a set of VLAN ids; write \"untagged\", \"100\", \"100-199\", or with an inner tag \
                 \"300.1-4094\"; ids are 1 to 4094, and * is all of them"
            )
        };
        Ok(Self {
            outer: Some(ids(outer).ok_or_else(wrong)?),
            inner: inner
                .map(|inner| ids(inner).ok_or_else(wrong))
                .transpose()?,
        })
    }
}

/// Parses `100`, `100-199` or `*`.
fn ids(text: &str) -> Option<Ids> {
    if text == "*" {
        return Some(IDS);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let id = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let id = text.parse().ok().filter(|_| digits);
        id.filter(|id| IDS.contains(id))
    };
    let (first, last) = (id(first)?, id(last)?);
    (first <= last).then_some(first..=last)
}

impl fmt::Display for VlanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |f: &mut fmt::Formatter<'_>, ids: &Ids| match (ids.start(), ids.end()) {
            _ if *ids == IDS => f.write_str("*"),
            (first, last) if first == last => write!(f, "{first}"),
            (first, last) => write!(f, "{first}-{last}"),
        };
        match (&self.outer, &self.inner) {
            (None, _) => f.write_str("untagged"),
            (Some(outer), None) => write(f, outer),
            (Some(outer), Some(inner)) => {
                write(f, outer)?;
                f.write_str(".")?;
                write(f, inner)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_tags_that_its_text_names() {
        let all = [
            Vlans::NONE,
            Vlans::one(100),
            Vlans::one(199),
            Vlans::one(200),
            Vlans::two(300, 1),
            Vlans::two(300, 4094),
            Vlans::two(301, 1),
        ];
        for (text, expected) in [
            ("untagged", &all[..1]),
            ("100", &all[1..2]),
            ("100-199", &all[1..3]),
            ("*", &all[1..4]),
            ("300.1-4094", &all[4..6]),
            ("300-301.1", &[all[4], all[6]]),
            ("*.*", &all[4..7]),
        ] {
            let range: VlanRange = text.parse().unwrap();
            let found: Vec<_> = all
                .into_iter()
                .filter(|tags| range.contains(*tags))
                .collect();
            assert_eq!(found, expected, "{text}");
            assert_eq!(range.to_string().parse(), Ok(range), "{text}");
        }
        assert_eq!(
            "7.9".parse::<VlanRange>().unwrap().single(),
            Some(Vlans::two(7, 9))
        );
        assert_eq!("7-8".parse::<VlanRange>().unwrap().single(), None);
    }

    #[test]
    fn a_text_that_is_no_set_says_what_would_be() {
        for text in [
            "", "0", "4095", "9-7", "1-", "-1", "+1", "1.", ".1", "1.2.3", "tagged", "1 ",
        ] {
            let error = text.parse::<VlanRange>().unwrap_err();
            assert!(error.contains("\"300.1-4094\""), "{text}: {error}");
        }
    }
}
