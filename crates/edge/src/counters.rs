//! Counters of an edge, and its reasons to discard.

/// Why a packet was dropped, or a frame ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// A frame in a session that does not end here.
    NotTerminated,
    /// A packet of a network protocol that is not open.
    NotOpen,
    /// The IP version of a packet differs from its frame's.
    OtherVersion,
    /// The filter denies it.
    Filtered,
    /// A packet from the TUN device cannot be split into segments.
    NotCut,
    /// No room to queue a frame or datagram.
    Backlog,
    /// The packet itself is invalid, or has no route.
    Forward(forward::Discard),
    /// A frame that PPP ignored.
    Ppp(ppp::Discard),
}

const OWN: [Discard; 6] = [
    Discard::NotTerminated,
    Discard::NotOpen,
    Discard::OtherVersion,
    Discard::Filtered,
    Discard::NotCut,
    Discard::Backlog,
];

impl Discard {
    /// How many reasons there are.
    pub const COUNT: usize = OWN.len() + forward::Discard::ALL.len() + ppp::Discard::ALL.len();

    /// Every reason, in the order of their counters.
    pub fn all() -> impl Iterator<Item = Self> {
        let forward = forward::Discard::ALL.into_iter().map(Self::Forward);
        let ppp = ppp::Discard::ALL.into_iter().map(Self::Ppp);
        OWN.into_iter().chain(forward).chain(ppp)
    }

    /// The index of its counter.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::NotTerminated => 0,
            Self::NotOpen => 1,
            Self::OtherVersion => 2,
            Self::Filtered => 3,
            Self::NotCut => 4,
            Self::Backlog => 5,
            Self::Forward(why) => OWN.len() + why as usize,
            Self::Ppp(why) => {
                let known = ppp::Discard::ALL.iter().position(|&one| one == why);
                OWN.len() + forward::Discard::ALL.len() + known.unwrap_or(0)
            }
        }
    }

    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTerminated => "not_terminated",
            Self::NotOpen => "not_open",
            Self::OtherVersion => "other_version",
            Self::Filtered => "filtered",
            Self::NotCut => "not_cut",
            Self::Backlog => "backlog",
            Self::Forward(why) => why.name(),
            Self::Ppp(why) => why.name(),
        }
    }
}

/// The counters of the edge itself; its paths have their own. Plain numbers: counting costs an addition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Subscribers that connected.
    pub(crate) up: u64,
    /// Subscribers that ended, connected or not.
    pub(crate) down: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Those for which there was no address.
    pub(crate) without_address: u64,
    /// Sessions ended because the table was full.
    pub(crate) too_many: u64,
    /// Routes refused because another subscriber has them, or the table is full.
    pub(crate) routes_refused: u64,
    /// LCP Echo-Replies to our requests.
    pub(crate) echo_replies: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let places: Vec<_> = Discard::all().map(Discard::place).collect();
        assert_eq!(places, (0..Discard::COUNT).collect::<Vec<_>>());
    }
}
