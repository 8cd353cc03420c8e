//! What an edge counts.

/// Why a packet did not go on, or a frame was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// A frame in a session that does not end here.
    NotTerminated,
    /// A packet of a network protocol that is not open.
    NotOpen,
    /// The version of a packet is not the one that its frame says.
    OtherVersion,
    /// The filter denies it.
    Filtered,
    /// What the TUN device gave cannot be cut into packets.
    NotCut,
    /// A frame that could not wait to be sent.
    Backlog,
    /// What is wrong with the packet itself, or with its way.
    Forward(forward::Discard),
    /// What PPP ignored.
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

    /// The place of its counter.
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

/// What the edge itself counts; its paths have their own. Plain numbers: counting costs an addition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Subscribers that came up.
    pub(crate) up: u64,
    /// Subscribers that ended, up or not.
    pub(crate) down: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Those for whom there was no address.
    pub(crate) without_address: u64,
    /// Sessions for which there was no room.
    pub(crate) too_many: u64,
    /// Routes that another subscriber has, or for which there was no room.
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
