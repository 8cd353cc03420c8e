//! What a group has written and its members have not all read: blocks of whole messages, shared, with marks of who is
//! not to be sent which.

use std::collections::VecDeque;

/// Octets that wait for the slowest member before it is served apart.
pub(crate) const QUEUE_MAX: usize = 256 * 1_024;
/// A block that has as many octets takes no more.
const BLOCK_FULL: usize = 16 * 1_024;

/// To whom messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    All,
    AllBut(u32),
    Only(u32),
}

impl Mark {
    #[inline]
    fn is_for(self, peer: u32) -> bool {
        match self {
            Mark::All => true,
            Mark::AllBut(other) => peer != other,
            Mark::Only(other) => peer == other,
        }
    }
}

#[derive(Debug, Default)]
struct Block {
    octets: Vec<u8>,
    /// Where messages of one mark end, and the mark.
    runs: Vec<(u32, Mark)>,
    /// The places that the messages are about.
    slots: Vec<u32>,
    /// Members that have not read it.
    readers: u32,
    /// Whether it takes no more, and can be read.
    is_sealed: bool,
}

/// Where a member reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    /// Which block, counted from the group's first.
    block: u64,
    run: u32,
    octet: u32,
}

/// A group's queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    blocks: VecDeque<Block>,
    /// How many blocks were before the first of them.
    first: u64,
    octets: usize,
}

impl Queue {
    /// Where a member reads that has read all.
    pub(crate) fn end(&self) -> Cursor {
        Cursor {
            block: self.next_number(),
            run: 0,
            octet: 0,
        }
    }

    fn next_number(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }

    /// How many blocks there have been before the first that somebody still has to read.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// How many blocks there have been.
    pub(crate) fn last(&self) -> u64 {
        self.next_number()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.octets >= QUEUE_MAX
    }

    pub(crate) fn memory(&self) -> usize {
        let blocks = self.blocks.iter();
        let held = blocks.map(|b| b.octets.capacity() + b.slots.capacity() * 4);
        self.blocks.capacity() * size_of::<Block>() + held.sum::<usize>()
    }

    #[inline]
    pub(crate) fn is_read(&self, cursor: Cursor) -> bool {
        cursor.block == self.next_number()
    }

    /// Whether a reader holds back more than half of what may wait.
    pub(crate) fn lags(&self, cursor: Cursor) -> bool {
        let skipped = (cursor.block - self.first) as usize;
        let unread = self.blocks.iter().skip(skipped);
        unread.map(|block| block.octets.len()).sum::<usize>() > QUEUE_MAX / 2
    }

    /// Lets `write` append whole messages for those that `mark` says, about the places `slots`; there are so many
    /// `readers` now, one or more. Nothing is kept when nothing was written.
    pub(crate) fn append(
        &mut self,
        readers: u32,
        mark: Mark,
        slots: impl Iterator<Item = u32>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(block) = self.open_block(readers) else {
            return;
        };
        let start = block.octets.len();
        write(&mut block.octets);
        let end = block.octets.len();
        if end == start {
            return;
        }
        block.slots.extend(slots);
        match block.runs.last_mut() {
            Some((run_end, other)) if *other == mark => *run_end = end as u32,
            _ => block.runs.push((end as u32, mark)),
        }
        self.octets += end - start;
    }

    /// The block that takes more, which nobody has read of yet.
    fn open_block(&mut self, readers: u32) -> Option<&mut Block> {
        let takes_more = |block: &Block| !block.is_sealed && block.octets.len() < BLOCK_FULL;
        if !self.blocks.back().is_some_and(takes_more) {
            self.seal(readers);
            self.blocks.push_back(Block::default());
        }
        self.blocks.back_mut()
    }

    /// Ends the block that was being written: now it can be read by so many.
    pub(crate) fn seal(&mut self, readers: u32) {
        if let Some(block) = self.blocks.back_mut()
            && !block.is_sealed
        {
            block.readers = readers;
            block.is_sealed = true;
            if block.octets.is_empty() {
                self.blocks.pop_back();
            }
        }
    }

    /// Copies what `peer` has not read, until `out` has `limit` octets; gives whether anything is left.
    pub(crate) fn read(
        &mut self,
        cursor: &mut Cursor,
        peer: u32,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        while out.len() < limit {
            let Some(block) = self.blocks.get_mut((cursor.block - self.first) as usize) else {
                return false;
            };
            let Some(&(end, mark)) = block.runs.get(cursor.run as usize) else {
                self.pass(cursor);
                continue;
            };
            if mark.is_for(peer) {
                let room = limit - out.len();
                let messages =
                    whole_messages(&block.octets[cursor.octet as usize..end as usize], room);
                out.extend_from_slice(messages);
                cursor.octet += messages.len() as u32;
                if cursor.octet < end {
                    continue;
                }
            }
            cursor.octet = end;
            cursor.run += 1;
        }
        // What follows may be for others only; that is found out next time.
        !self.is_read(*cursor)
    }

    fn pass(&mut self, cursor: &mut Cursor) {
        self.blocks[(cursor.block - self.first) as usize].readers -= 1;
        *cursor = Cursor {
            block: cursor.block + 1,
            ..Cursor::default()
        };
        self.drop_read();
    }

    fn drop_read(&mut self) {
        while let Some(block) = self.blocks.front()
            && block.readers == 0
            && block.is_sealed
        {
            self.octets -= block.octets.len();
            self.blocks.pop_front();
            self.first += 1;
        }
        if self.blocks.is_empty() && self.blocks.capacity() > 8 {
            self.blocks = VecDeque::new();
        }
    }

    /// Lets a reader go; `about` is told each place of what it had not read.
    pub(crate) fn leave(&mut self, cursor: Cursor, mut about: impl FnMut(u32)) {
        let skipped = (cursor.block - self.first) as usize;
        for block in self.blocks.iter_mut().skip(skipped) {
            block.readers -= 1;
            for &slot in &block.slots {
                about(slot);
            }
        }
        self.drop_read();
    }
}

/// The messages from the beginning of `octets` until they are `room` octets or more together.
fn whole_messages(octets: &[u8], room: usize) -> &[u8] {
    if octets.len() <= room {
        return octets;
    }
    let mut end = 0;
    while end < room {
        let len = octets.get(end + 16..end + 18);
        let len = len.map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])));
        end += len.max(1);
    }
    &octets[..end.min(octets.len())]
}
