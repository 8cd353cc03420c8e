//! The filter that a user types: part of a name, `state=up`, `tunnel=17`.

use crate::rows::{Listing, Subscriber};

/// A filter of subscribers. Words that are no `state=` and no `tunnel=` are part of the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Filter {
    name: String,
    state: Option<String>,
    tunnel: Option<u32>,
}

/// The states that the daemon knows.
const STATES: [&str; 5] = ["link", "asking", "networks", "up", "ending"];

impl Filter {
    /// Reads what was typed so far. A word that is not complete yet, such as `state=u`, matches everything.
    pub(super) fn read(text: &str) -> Self {
        let mut filter = Self::default();
        let mut names = Vec::new();
        for word in text.split_whitespace() {
            if let Some(state) = word.strip_prefix("state=") {
                if STATES.contains(&state) {
                    filter.state = Some(state.to_owned());
                }
            } else if let Some(tunnel) = word.strip_prefix("tunnel=") {
                filter.tunnel = tunnel.parse().ok();
            } else {
                names.push(word);
            }
        }
        filter.name = names.join(" ");
        filter
    }

    /// Whether the row matches; the daemon matches names in the same way.
    pub(super) fn matches(&self, row: &Subscriber) -> bool {
        row.name.contains(&self.name)
            && self.state.as_ref().is_none_or(|state| *state == row.state)
            && self.tunnel.is_none_or(|tunnel| tunnel == row.tunnel)
    }

    /// The listing that the daemon is asked for.
    pub(super) fn listing(&self) -> Listing {
        Listing {
            name: (!self.name.is_empty()).then(|| self.name.clone()),
            state: self.state.clone(),
            tunnel: self.tunnel,
            sort: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_narrow_by_name_state_and_tunnel() {
        let filter = Filter::read("  @example.net state=up tunnel=17 ");
        let listing = filter.listing();
        assert_eq!(listing.name.as_deref(), Some("@example.net"));
        assert_eq!(listing.state.as_deref(), Some("up"));
        assert_eq!(listing.tunnel, Some(17));
        let mut row = Subscriber {
            name: "alice@example.net".into(),
            state: "up".into(),
            tunnel: 17,
            ..Subscriber::default()
        };
        assert!(filter.matches(&row));
        row.tunnel = 18;
        assert!(!filter.matches(&row));
    }

    #[test]
    fn a_word_that_is_not_complete_matches_everything() {
        for text in ["", "state=", "state=u", "tunnel=", "tunnel=x"] {
            assert_eq!(Filter::read(text), Filter::default(), "{text}");
        }
    }
}
