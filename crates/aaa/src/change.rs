//! A change of a connected subscriber's settings, from a CoA-Request (RFC 5176, section 2.2) or an operator's command.
//!
//! A change has no effect of its own: the crate `edge` applies it, all of it or nothing. Start reading at [`Change`].

use base::Duration;

use crate::profile::Prefix;
use crate::queue::Queue;

/// The name that switches a walled garden off.
pub const NO_GARDEN: &str = "none";

/// Which walled garden a subscriber is put into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walled {
    /// None: its packets pass its own filter again.
    Out,
    /// The garden with this name.
    In(Box<str>),
}

impl Walled {
    /// Reads a garden's name; `none` switches the garden off.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        match text {
            NO_GARDEN => Ok(Self::Out),
            text => crate::queue::name(text).map(Self::In),
        }
    }
}

/// What is to change. A part that is absent stays as it is (RFC 5176, section 3.6, note 3).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Change {
    /// The filter's name. If no filter has it, it may name a template or a garden.
    pub filter: Option<Box<str>>,
    /// The walled garden.
    pub garden: Option<Walled>,
    /// Rates, template and link of the queues.
    pub queue: Queue,
    /// First forget what earlier changes set for the queues.
    pub reset_queue: bool,
    /// The longest session, counted from its start; zero: no limit.
    pub session_timeout: Option<Duration>,
    /// The longest time without a data packet; zero: no limit.
    pub idle_timeout: Option<Duration>,
    /// The interval of Interim-Updates; zero: none.
    pub interim_interval: Option<Duration>,
    /// The networks behind the subscriber, IPv4's and IPv6's. They replace those of their version of IP.
    pub routes: [Option<Vec<Prefix>>; 2],
    /// The Class attributes of later records.
    pub class: Option<Vec<Box<[u8]>>>,
}

impl Change {
    /// Whether nothing is to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a network to those that replace the networks of its version of IP.
    pub fn route(&mut self, network: Prefix) {
        let place = usize::from(network.address().is_ipv6());
        let routes = self.routes[place].get_or_insert_default();
        if !routes.contains(&network) {
            routes.push(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_replace_those_of_their_own_version() {
        let network = |text: &str, length| {
            Prefix::new(text.parse().expect("an address"), length).expect("a network")
        };
        let mut change = Change::default();
        assert!(change.is_empty());
        change.route(network("10.0.0.0", 8));
        change.route(network("10.0.0.0", 8));
        assert_eq!(change.routes, [Some(vec![network("10.0.0.0", 8)]), None]);
        change.route(network("2001:db8::", 32));
        assert_eq!(change.routes[1], Some(vec![network("2001:db8::", 32)]));
    }

    #[test]
    fn none_names_no_garden() {
        assert_eq!(Walled::read("none"), Ok(Walled::Out));
        assert_eq!(Walled::read("unpaid"), Ok(Walled::In("unpaid".into())));
        assert!(Walled::read("a b").is_err());
        assert!(Walled::read("").is_err());
    }
}
