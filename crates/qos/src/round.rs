//! Whose turn it is: members of a table, one behind the other.

/// In no round.
const IDLE: u32 = u32::MAX;
/// The last of a round.
const LAST: u32 = u32::MAX - 1;

/// What can stand in a [`Round`]: it keeps who comes after it.
pub(crate) trait Member {
    /// Where that is kept.
    fn link(&mut self) -> &mut Link;
}

/// Who comes after a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link(u32);

impl Default for Link {
    fn default() -> Self {
        Self(IDLE)
    }
}

impl Link {
    /// Whether its owner stands in a round.
    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        self.0 != IDLE
    }
}

/// Members in the order of their turns. Each stands in at most one round.
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
    /// Puts a member that waits in no round behind all others.
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

    /// Takes the first out.
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

    /// Whose turn it is.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != LAST).then_some(self.first)
    }

    /// Members in it.
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
