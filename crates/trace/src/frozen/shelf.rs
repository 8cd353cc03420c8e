//! Keeps frozen connections in large pieces of memory. One allocation for each would take 16 bytes more and, with a
//! million of them, a page fault for every twelfth.
//!
//! An entry is its length, four bytes, and then the connection, and takes a multiple of [`UNIT`]. The room of a removed
//! entry is reused for one of the same size, or of a smaller one if much room is free.

/// Bytes of an entry's length.
pub(crate) const LENGTH: usize = 4;

/// Entries begin at multiples of this.
const UNIT: usize = 16;

/// Bytes of a piece. Only what has been used of it takes memory.
pub(crate) const PIECE: usize = 16 << 20;

/// Units of the largest entry in a piece. Larger ones have an allocation of their own.
const UNITS_MAX: usize = 256;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// The bit of a [`Ticket`] for an entry with an allocation of its own.
const LARGE: u32 = 1 << 31;

/// Pieces of memory, each with its place among all.
pub(crate) type Pieces = Vec<(u64, Vec<u8>)>;

/// Frozen connections.
#[derive(Debug)]
pub(crate) struct Shelf {
    pieces: Vec<Vec<u8>>,
    /// Removed entries, by how many units they have.
    free: Vec<Vec<u32>>,
    /// Bytes in removed entries.
    free_bytes: u64,
    /// Entries with an allocation of their own. A removed one is empty.
    large: Vec<Box<[u8]>>,
    large_free: Vec<u32>,
    /// Bytes of all entries.
    bytes: u64,
}

impl Default for Shelf {
    fn default() -> Shelf {
        Shelf {
            pieces: Vec::new(),
            free: vec![Vec::new(); UNITS_MAX + 1],
            free_bytes: 0,
            large: Vec::new(),
            large_free: Vec::new(),
            bytes: 0,
        }
    }
}

/// The entry at the start of these bytes.
pub(crate) fn entry(octets: &[u8]) -> &[u8] {
    let Some((length, rest)) = octets.split_first_chunk::<LENGTH>() else {
        return &[];
    };
    &rest[..u32::from_le_bytes(*length) as usize]
}

fn units(length: usize) -> usize {
    (LENGTH + length).div_ceil(UNIT)
}

impl Shelf {
    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an entry.
    pub(crate) fn put(&mut self, octets: &[u8]) -> Ticket {
        let units = units(octets.len());
        self.bytes += (units * UNIT) as u64;
        if units > UNITS_MAX {
            return self.put_large(octets);
        }
        let reused = self.free[units].pop().or_else(|| self.larger(units));
        if let Some(unit) = reused {
            self.free_bytes -= (units * UNIT) as u64;
            let (piece, start) = place(unit);
            let room = &mut self.pieces[piece][start..start + LENGTH + octets.len()];
            let (length, room) = room.split_at_mut(LENGTH);
            length.copy_from_slice(&(octets.len() as u32).to_le_bytes());
            room.copy_from_slice(octets);
            return Ticket(unit);
        }
        let full = |piece: &Vec<u8>| PIECE - piece.len() < units * UNIT;
        if self.pieces.last().is_none_or(full) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let before = (self.pieces.len() - 1) * (PIECE / UNIT);
        let Some(piece) = self.pieces.last_mut() else {
            return Ticket(0);
        };
        let start = piece.len();
        piece.extend_from_slice(&(octets.len() as u32).to_le_bytes());
        piece.extend_from_slice(octets);
        piece.resize(start + units * UNIT, 0);
        Ticket((before + start / UNIT) as u32)
    }

    /// Takes the room of a larger entry if a quarter of all room is free. The rest of it stays free.
    #[cold]
    fn larger(&mut self, units: usize) -> Option<u32> {
        if self.free_bytes * 4 < self.bytes {
            return None;
        }
        let found = (units + 1..=UNITS_MAX).find(|&units| !self.free[units].is_empty())?;
        let unit = self.free[found].pop()?;
        self.free[found - units].push(unit + units as u32);
        Some(unit)
    }

    #[cold]
    fn put_large(&mut self, octets: &[u8]) -> Ticket {
        let length = (octets.len() as u32).to_le_bytes();
        let entry: Box<[u8]> = length.iter().chain(octets).copied().collect();
        let at = match self.large_free.pop() {
            Some(at) => {
                self.large[at as usize] = entry;
                at
            }
            None => {
                self.large.push(entry);
                (self.large.len() - 1) as u32
            }
        };
        Ticket(at | LARGE)
    }

    /// An entry.
    pub(crate) fn get(&self, ticket: Ticket) -> &[u8] {
        if ticket.0 & LARGE != 0 {
            return entry(&self.large[(ticket.0 & !LARGE) as usize]);
        }
        let (piece, start) = place(ticket.0);
        entry(&self.pieces[piece][start..])
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, ticket: Ticket) {
        let units = units(self.get(ticket).len());
        self.bytes -= (units * UNIT) as u64;
        if ticket.0 & LARGE != 0 {
            let at = ticket.0 & !LARGE;
            self.large[at as usize] = Box::default();
            self.large_free.push(at);
            return;
        }
        self.free_bytes += (units * UNIT) as u64;
        self.free[units].push(ticket.0);
    }

    /// The pieces and what else there is, as pieces with the place of each, from `base` on. The function gives the place
    /// of an entry.
    pub(crate) fn into_pieces(self, base: u64) -> (Pieces, impl Fn(Ticket) -> u64) {
        let mut end = base;
        let mut pieces = Vec::with_capacity(self.pieces.len() + self.large.len());
        for piece in self.pieces {
            pieces.push((end, piece));
            end += PIECE as u64;
        }
        let mut places = Vec::with_capacity(self.large.len());
        for entry in self.large {
            places.push(end);
            let length = entry.len() as u64;
            pieces.push((end, entry.into_vec()));
            end += length;
        }
        (pieces, move |ticket: Ticket| match ticket.0 & LARGE {
            0 => base + u64::from(ticket.0) * UNIT as u64,
            _ => places[(ticket.0 & !LARGE) as usize],
        })
    }
}

/// Piece of an entry, and where it begins there.
fn place(unit: u32) -> (usize, usize) {
    let unit = unit as usize;
    (unit / (PIECE / UNIT), unit % (PIECE / UNIT) * UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_room_of_removed_entries_is_reused() {
        let mut shelf = Shelf::default();
        let tickets: Vec<Ticket> = (0..1_000).map(|_| shelf.put(&[1; 300])).collect();
        let used = shelf.pieces[0].len();
        for ticket in &tickets {
            shelf.remove(*ticket);
        }
        assert_eq!(shelf.bytes(), 0);
        // Of the same size, and then smaller ones.
        for length in [300, 120] {
            let tickets: Vec<Ticket> = (0..1_000).map(|_| shelf.put(&vec![2; length])).collect();
            assert_eq!(shelf.pieces[0].len(), used, "{length}");
            for ticket in &tickets {
                shelf.remove(*ticket);
            }
        }
    }

    proptest! {
        #[test]
        fn entries_come_back_until_they_are_removed(steps in prop::collection::vec((0usize..6_000, any::<bool>()), 0..300)) {
            let mut shelf = Shelf::default();
            let mut held: BTreeMap<usize, (Ticket, usize)> = BTreeMap::new();
            for (step, (length, remove)) in steps.into_iter().enumerate() {
                // Most are short, as connections are.
                let length = if length < 5_000 { length / 10 } else { length };
                if remove && let Some((_, (ticket, _))) = held.pop_first() {
                    shelf.remove(ticket);
                }
                held.insert(step, (shelf.put(&vec![step as u8; length]), length));
            }
            for (step, (ticket, length)) in &held {
                prop_assert_eq!(shelf.get(*ticket), &vec![*step as u8; *length][..]);
            }
            let (pieces, place) = shelf.into_pieces(1_000);
            for (step, (ticket, length)) in &held {
                let place = place(*ticket);
                let (start, piece) = pieces.iter().rev().find(|(start, _)| *start <= place).unwrap();
                let found = entry(&piece[(place - start) as usize..]);
                prop_assert_eq!(found, &vec![*step as u8; *length][..]);
            }
        }
    }
}
