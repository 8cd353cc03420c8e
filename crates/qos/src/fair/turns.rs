//! Turns of hosts, and of the flows of a host.

/// No member.
pub const NONE: u32 = u32::MAX;

/// A ring of hosts, or of a host's flows, in the order of their turns.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// The member whose turn it is, or [`NONE`].
    pub first: u32,
    last: u32,
}

impl Default for Ring {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

/// A member of a [`Ring`].
pub trait Linked {
    /// The stored index of the next member, or [`NONE`].
    fn next(&mut self) -> &mut u32;
}

impl Ring {
    /// Appends a member that is in no ring.
    pub fn push<T: Linked>(&mut self, all: &mut [T], item: u32) {
        *all[item as usize].next() = NONE;
        match self.last {
            NONE => self.first = item,
            last => *all[last as usize].next() = item,
        }
        self.last = item;
    }

    /// Removes the first member.
    pub fn pop<T: Linked>(&mut self, all: &mut [T]) {
        if self.first != NONE {
            self.first = *all[self.first as usize].next();
        }
        if self.first == NONE {
            self.last = NONE;
        }
    }
}

/// New members go before old ones, but may not starve them: for each byte that old ones send, new ones may send
/// [`Turns::FAVOUR`] bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns {
    /// Members that just became active.
    pub new: Ring,
    /// Members that have had a turn.
    pub old: Ring,
    /// Bytes that new members may send before an old one gets its turn.
    credit: i64,
}

impl Turns {
    /// Bytes that new members may send for each byte of old ones.
    pub const FAVOUR: i64 = 16;

    /// The member whose turn it is, and whether it is a new one; `NONE` if there is no member.
    #[inline]
    #[must_use]
    pub fn first(&self) -> (u32, bool) {
        if self.new.first != NONE && (self.credit > 0 || self.old.first == NONE) {
            (self.new.first, true)
        } else {
            (self.old.first, false)
        }
    }

    /// Charges the bytes that the member with the turn sent.
    #[inline]
    pub fn sent(&mut self, new: bool, length: u32, quantum: i64) {
        let length = i64::from(length);
        let most = quantum * Self::FAVOUR;
        self.credit = if self.old.first == NONE {
            most
        } else if new {
            self.credit - length
        } else {
            most.min(self.credit + length * Self::FAVOUR)
        };
    }

    /// Moves the member with the turn to the end of the old ones.
    #[inline]
    pub fn rotate<T: Linked>(&mut self, all: &mut [T], new: bool) {
        let first = self.remove(all, new);
        self.old.push(all, first);
    }

    /// Removes the member with the turn.
    #[inline]
    pub fn remove<T: Linked>(&mut self, all: &mut [T], new: bool) -> u32 {
        let ring = if new { &mut self.new } else { &mut self.old };
        let first = ring.first;
        ring.pop(all);
        first
    }
}
