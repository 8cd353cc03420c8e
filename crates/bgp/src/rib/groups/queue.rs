//! The queue of a group: blocks of whole messages that members share, with marks for messages that are not for all
//! members.

use std::collections::VecDeque;

/// Maximum bytes queued for the slowest member; beyond it, that member is served apart.
pub(crate) const QUEUE_MAX: usize = 256 * 1_024;
/// A block with this many bytes is full.
const BLOCK_FULL: usize = 16 * 1_024;

/// The members that a message is for.
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
    /// Where the messages of each mark end.
    runs: Vec<(u32, Mark)>,
    /// The slots that the messages are about.
    slots: Vec<u32>,
    /// How many members have not read it.
    readers: u32,
    /// Whether the block is closed: it can be read and takes no more messages.
    is_sealed: bool,
}

/// A member's position in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    /// The number of the block, counted from the group's first.
    block: u64,
    run: u32,
    octet: u32,
}

/// A group's queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    blocks: VecDeque<Block>,
    /// How many blocks were removed.
    first: u64,
    octets: usize,
}

impl Queue {
    /// The position of a member that has read all.
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

    /// How many blocks there were before the first one that a member still has to read.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// How many blocks there were in all.
    pub(crate) fn last(&self) -> u64 {
        self.next_number()
    }

    /// Whether every member has read everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
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

    /// Whether a reader has not read the oldest block.
    pub(crate) fn is_at_first(&self, cursor: Cursor) -> bool {
        cursor.block == self.first && !self.blocks.is_empty()
    }

    /// Whether a reader is behind by more than half of what may wait.
    pub(crate) fn lags(&self, cursor: Cursor) -> bool {
        let skipped = (cursor.block - self.first) as usize;
        let unread = self.blocks.iter().skip(skipped);
        unread.map(|block| block.octets.len()).sum::<usize>() > QUEUE_MAX / 2
    }

    /// Lets `write` append whole messages for the members of `mark`, about the slots `slots`. `readers` is the number
    /// of members that read the queue, at least one. If `write` appends nothing, nothing is stored.
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

    /// The block that takes more messages; no member has started to read it.
    fn open_block(&mut self, readers: u32) -> Option<&mut Block> {
        let takes_more = |block: &Block| !block.is_sealed && block.octets.len() < BLOCK_FULL;
        if !self.blocks.back().is_some_and(takes_more) {
            self.seal(readers);
            self.blocks.push_back(Block::default());
        }
        self.blocks.back_mut()
    }

    /// Closes the block that was written: now `readers` members can read it.
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

    /// Copies what `peer` has not read, until `out` has `limit` octets. Returns whether anything is left.
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
        // The messages that are left may be for other members only; the next call finds out.
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

    /// Removes a reader; `about` is called with each slot of the messages that it had not read.
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

/// The first messages of `octets`, until they have `room` octets or more.
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
