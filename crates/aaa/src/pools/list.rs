//! Two numbers per address, and linked lists through them.

/// No address.
const NIL: u32 = u32::MAX;

/// For a free address, its neighbours in a list; for a held one, its holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    low: u32,
    high: u32,
}

impl Cell {
    /// Neither held nor listed.
    pub(super) const NONE: Self = Self {
        low: NIL,
        high: NIL,
    };

    pub(super) fn of_holder(holder: u64) -> Self {
        Self {
            low: holder as u32,
            high: (holder >> 32) as u32,
        }
    }

    pub(super) fn holder(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// A list of free addresses, the one released longest ago first. `low` is the previous index, `high` the next.
#[derive(Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    pub(super) len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        first: NIL,
        last: NIL,
        len: 0,
    };

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    /// Appends an unlisted index.
    pub(super) fn push(&mut self, cells: &mut [Cell], place: u32) {
        cells[place as usize] = Cell {
            low: self.last,
            high: NIL,
        };
        match self.last {
            NIL => self.first = place,
            last => cells[last as usize].high = place,
        }
        self.last = place;
        self.len += 1;
    }

    /// Removes an index from this list.
    pub(super) fn remove(&mut self, cells: &mut [Cell], place: u32) {
        let Cell { low, high } = cells[place as usize];
        match low {
            NIL => self.first = high,
            before => cells[before as usize].high = high,
        }
        match high {
            NIL => self.last = low,
            behind => cells[behind as usize].low = low,
        }
        cells[place as usize] = Cell::NONE;
        self.len -= 1;
    }
}
