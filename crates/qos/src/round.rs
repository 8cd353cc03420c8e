//! A round of turns: a linked list through the members of a table.

/// The member is in no round.
const IDLE: u32 = u32::MAX;
/// The member is the last of a round.
const LAST: u32 = u32::MAX - 1;

/// A member of a [`Round`]: it stores the link to the next one.
pub(crate) trait Member {
    /// The stored link.
    fn link(&mut self) -> &mut Link;
}

/// The link to the next member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link(u32);

impl Default for Link {
    fn default() -> Self {
        Self(IDLE)
    }
}

impl Link {
    /// Whether its owner is in a round.
    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        self.0 != IDLE
    }
}

/// Members in the order of their turns. Each is in at most one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    first: u32,
    last: u32,
    length: u32,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            first: LAST,
            last: LAST,
            length: 0,
        }
    }
}

impl Round {
    /// Appends a member that is in no round.
    #[inline]
    pub(crate) fn push<M: Member>(&mut self, members: &mut [M], index: u32) {
        members[index as usize].link().0 = LAST;
        if self.last == LAST {
            self.first = index;
        } else {
            members[self.last as usize].link().0 = index;
        }
        self.last = index;
        self.length += 1;
    }

    /// Removes the first member.
    #[inline]
    pub(crate) fn pop<M: Member>(&mut self, members: &mut [M]) -> Option<u32> {
        let index = self.first()?;
        let link = members[index as usize].link();
        self.first = link.0;
        *link = Link::default();
        if self.first == LAST {
            self.last = LAST;
        }
        self.length -= 1;
        Some(index)
    }

    /// The member whose turn it is.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != LAST).then_some(self.first)
    }

    /// Number of members.
    #[inline]
    pub(crate) fn length(&self) -> u32 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Member for Link {
        fn link(&mut self) -> &mut Link {
            self
        }
    }

    #[test]
    fn who_waits_is_taken_in_order_and_waits_no_more() {
        let mut members = [Link::default(); 4];
        let mut round = Round::default();
        for index in [2, 0, 3] {
            round.push(&mut members, index);
        }
        assert_eq!(members.map(Link::is_waiting), [true, false, true, true]);
        assert_eq!(round.first(), Some(2));
        assert_eq!(round.pop(&mut members), Some(2));
        round.push(&mut members, 2);
        let order: Vec<u32> = core::iter::from_fn(|| round.pop(&mut members)).collect();
        assert_eq!(order, [0, 3, 2]);
        assert_eq!(round.length(), 0);
        assert!(members.iter().all(|link| !link.is_waiting()));
        round.push(&mut members, 1);
        assert_eq!(round.pop(&mut members), Some(1));
    }
}
