//! External addresses, their port blocks, and which mapping each port has.
//!
//! A port has one mapping (RFC 4787 REQ-3, RFC 5382 REQ-7). A block's ports are a page per protocol, allocated with the
//! block's first mapping of that protocol (see [`crate::pages`]). The mapping of an external port is therefore found by
//! index, without a hash. Free blocks are a list per address; a block that was in use waits until its time is over (RFC
//! 6888 REQ-8). Allocating and freeing are O(1).

use std::collections::VecDeque;

use crate::config::Config;
use crate::layout::Layout;
pub(crate) use crate::pages::NONE;
use crate::pages::{Page, Pages};
use crate::range::Range;

/// A protocol that is translated. Each has ports of its own (RFC 7857 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Protocol {
    /// TCP, by port.
    Tcp,
    /// UDP, by port.
    Udp,
    /// ICMP queries, by identifier.
    Icmp,
}

impl Protocol {
    /// The protocol of a packet that is translated.
    pub(crate) const fn of(number: u8) -> Self {
        match number {
            wire::tcp::PROTOCOL => Self::Tcp,
            wire::udp::PROTOCOL => Self::Udp,
            _ => Self::Icmp,
        }
    }
}

#[derive(Debug)]
struct Address {
    external: u32,
    /// The first free block.
    free: u32,
    free_count: u32,
    /// The place in `Pool::open`.
    open_at: u32,
    /// Whether its blocks may be allocated: it is one of the settings' addresses.
    is_open: bool,
}

impl Address {
    fn new(external: u32) -> Self {
        Self {
            external,
            free: NONE,
            free_count: 0,
            open_at: NONE,
            is_open: true,
        }
    }
}

/// A block's state.
#[derive(Debug)]
pub(crate) struct BlockState {
    /// The subscriber's index; [`NONE`] if free.
    pub(crate) owner: u32,
    /// The next free block of the address, or the next block of the subscriber.
    pub(crate) next: u32,
    /// Mappings of all protocols.
    pub(crate) used: u32,
    pages: [Page; 3],
}

const _: () = assert!(size_of::<BlockState>() == 32, "two in a cache line");

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    ranges: Vec<(Range, u32)>,
    /// The lowest of their addresses, and how far the highest is behind it: most packets have an address outside of it.
    bounds: (u32, u32),
    pub(crate) layout: Layout,
    addresses: Vec<Address>,
    blocks: Vec<BlockState>,
    pub(crate) pages: Pages,
    /// Addresses with a free block.
    open: Vec<u32>,
    /// Blocks that wait, with the tick at which they are free.
    cooling: VecDeque<(u32, u32)>,
}

impl Pool {
    pub(crate) fn new(config: &Config) -> Self {
        let layout = Layout::new(config);
        let mut ranges = Vec::new();
        let mut addresses = Vec::new();
        for range in &config.externals {
            ranges.push((*range, addresses.len() as u32));
            for external in range.first().to_bits()..=range.last().to_bits() {
                addresses.push(Address::new(external));
            }
        }
        let mut pool = Self {
            ranges,
            bounds: (0, u32::MAX),
            layout,
            blocks: Vec::new(),
            pages: Pages::default(),
            addresses,
            open: Vec::new(),
            cooling: VecDeque::new(),
        };
        pool.add_blocks();
        pool.bound();
        pool
    }

    fn bound(&mut self) {
        let low = self.ranges.iter().map(|(range, _)| range.first()).min();
        let high = self.ranges.iter().map(|(range, _)| range.last()).max();
        if let (Some(low), Some(high)) = (low, high) {
            self.bounds = (low.to_bits(), high.to_bits() - low.to_bits());
        }
    }

    /// Makes the blocks of addresses that have none yet.
    fn add_blocks(&mut self) {
        let start = self.blocks.len() as u32;
        let count = self.addresses.len() as u32 * self.layout.per_address;
        self.blocks.extend((start..count).map(|_| BlockState {
            owner: NONE,
            next: NONE,
            used: 0,
            pages: [Page::default(); 3],
        }));
        for block in (start..count).rev() {
            let (address, own) = (self.address_of(block), block % self.layout.per_address);
            if self.layout.is_dynamic(own) && self.layout.has(address, own) {
                self.give_back(block);
            }
        }
    }

    /// How many addresses there would be with these, those that are closed included.
    pub(crate) fn addresses_with(&self, externals: &[Range]) -> u64 {
        let all = externals.iter().flat_map(|range| {
            (range.first().to_bits()..=range.last().to_bits())
                .filter(|&one| self.index_of(one).is_none())
        });
        u64::from(self.addresses()) + all.count() as u64
    }

    /// Opens the addresses of these ranges, and closes all others: their blocks stay with their owners until they are
    /// freed, and are not allocated again.
    pub(crate) fn set_externals(&mut self, externals: &[Range]) {
        for index in 0..self.addresses.len() {
            let external = self.addresses[index].external;
            let is_wanted = externals.iter().any(|one| one.position(external).is_some());
            if is_wanted != self.addresses[index].is_open {
                self.addresses[index].is_open = is_wanted;
                match is_wanted {
                    true => self.open(index as u32),
                    false => self.close(index as u32),
                }
            }
        }
        self.bounds = (0, u32::MAX);
        for range in externals {
            self.add_range(range);
        }
        self.add_blocks();
        self.bound();
    }

    /// Adds the addresses of a range that are not known yet, by ranges of consecutive ones.
    fn add_range(&mut self, range: &Range) {
        let mut start = None;
        for external in range.first().to_bits()..=range.last().to_bits() {
            if self.index_of(external).is_some() {
                start = None;
                continue;
            }
            let base = self.addresses.len() as u32;
            let (first, base) = *start.get_or_insert((external, base));
            let grown = Range::new(first.into(), external.into());
            self.addresses.push(Address::new(external));
            match (grown, first == external) {
                (Some(grown), true) => self.ranges.push((grown, base)),
                (Some(grown), false) => {
                    if let Some(last) = self.ranges.last_mut() {
                        *last = (grown, base);
                    }
                }
                (None, _) => {}
            }
        }
    }

    /// Whether blocks of this address may be allocated.
    #[inline]
    pub(crate) fn is_open(&self, address: u32) -> bool {
        self.addresses[address as usize].is_open
    }

    /// Adds an address to those with free blocks, if it has one.
    fn open(&mut self, address: u32) {
        let state = &mut self.addresses[address as usize];
        if state.free != NONE && state.is_open && state.open_at == NONE {
            state.open_at = self.open.len() as u32;
            self.open.push(address);
        }
    }

    /// Removes an address from those with free blocks.
    fn close(&mut self, address: u32) {
        let state = &mut self.addresses[address as usize];
        let at = core::mem::replace(&mut state.open_at, NONE);
        if at == NONE {
            return;
        }
        self.open.swap_remove(at as usize);
        if let Some(&moved) = self.open.get(at as usize) {
            self.addresses[moved as usize].open_at = at;
        }
    }

    /// The index of an external address.
    #[inline]
    pub(crate) fn index_of(&self, address: u32) -> Option<u32> {
        if address.wrapping_sub(self.bounds.0) > self.bounds.1 {
            return None;
        }
        self.ranges
            .iter()
            .find_map(|(range, base)| range.position(address).map(|at| base + at))
    }

    #[inline]
    pub(crate) fn external(&self, index: u32) -> u32 {
        self.addresses[index as usize].external
    }

    pub(crate) fn addresses(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// The block with this number, if there is one.
    #[inline]
    pub(crate) fn get(&self, block: u32) -> Option<&BlockState> {
        self.blocks.get(block as usize)
    }

    /// The page of a block that exists.
    #[inline]
    pub(crate) fn page(&self, block: u32, protocol: Protocol) -> Page {
        self.blocks[block as usize].pages[protocol as usize]
    }

    pub(crate) fn block(&self, block: u32) -> &BlockState {
        &self.blocks[block as usize]
    }

    pub(crate) fn block_mut(&mut self, block: u32) -> &mut BlockState {
        &mut self.blocks[block as usize]
    }

    #[inline]
    pub(crate) fn address_of(&self, block: u32) -> u32 {
        self.layout.split(block).0
    }

    pub(crate) fn is_dynamic(&self, block: u32) -> bool {
        self.layout.is_dynamic(self.layout.split(block).1)
    }

    /// The first port of a block, and how many it has.
    #[inline]
    pub(crate) fn ports_of(&self, block: u32) -> (u16, u32) {
        let (address, number) = self.layout.split(block);
        self.layout.ports_of(address, number)
    }

    /// The block of an external port, and the port's place in it; `None` if another NAT has it.
    #[inline]
    pub(crate) fn locate(&self, address: u32, port: u16) -> Option<(u32, u32)> {
        let (block, place) = self.layout.block_of(address, port)?;
        Some((address * self.layout.per_address + block, place))
    }

    /// Where the mapping of an external port is stored, if a port of its block is in use; for [`Pages::mapping`].
    #[inline]
    pub(crate) fn slot(&self, address: u32, port: u16, protocol: Protocol) -> Option<u32> {
        let (block, place) = self.locate(address, port)?;
        self.blocks.get(block as usize)?.pages[protocol as usize].slot(place)
    }

    /// The mapping of an external port.
    #[inline]
    pub(crate) fn mapping(&self, address: u32, port: u16, protocol: Protocol) -> Option<u32> {
        self.pages.mapping(self.slot(address, port, protocol)?)
    }

    /// A free port of a block, from a random place on; it is not taken yet.
    #[inline]
    pub(crate) fn find_port(
        &self,
        block: u32,
        count: u32,
        protocol: Protocol,
        random: u32,
    ) -> Option<u32> {
        let start = ((u64::from(random) * u64::from(count)) >> 32) as u32;
        let page = &self.blocks[block as usize].pages[protocol as usize];
        self.pages.free_place(page, count, start)
    }

    /// Gives the port at a place of a block to a mapping. The port is free.
    #[inline]
    pub(crate) fn take_port(
        &mut self,
        block: u32,
        count: u32,
        protocol: Protocol,
        place: u32,
        mapping: u32,
    ) {
        let state = &mut self.blocks[block as usize];
        let page = &mut state.pages[protocol as usize];
        self.pages.take(page, count, place, mapping);
        state.used += 1;
    }

    /// Takes the port back from its mapping.
    pub(crate) fn free_port(&mut self, block: u32, protocol: Protocol, place: u32) {
        let (_, count) = self.ports_of(block);
        let state = &mut self.blocks[block as usize];
        let page = &mut state.pages[protocol as usize];
        if self.pages.release(page, count, place) {
            state.used -= 1;
        }
    }

    /// A mapping of a block, while it has any.
    pub(crate) fn any_mapping(&self, block: u32) -> Option<u32> {
        let (_, count) = self.ports_of(block);
        let pages = &self.blocks[block as usize].pages;
        pages.iter().find_map(|page| self.pages.any(page, count))
    }

    /// Takes a free block of this address, or of any: the one of two random addresses with more free blocks.
    pub(crate) fn allocate(&mut self, address: Option<u32>, random: u64) -> Option<u32> {
        let address = match address {
            Some(address) => address,
            None => {
                let pick = |random: u32| {
                    let at = (u64::from(random) * self.open.len() as u64) >> 32;
                    self.open.get(at as usize).copied()
                };
                let (one, two) = (pick(random as u32)?, pick((random >> 32) as u32)?);
                let count = |at: u32| self.addresses[at as usize].free_count;
                match count(two) > count(one) {
                    true => two,
                    false => one,
                }
            }
        };
        let state = &mut self.addresses[address as usize];
        let block = state.free;
        if block == NONE || !state.is_open {
            return None;
        }
        state.free = core::mem::replace(&mut self.blocks[block as usize].next, NONE);
        state.free_count -= 1;
        if state.free == NONE {
            self.close(address);
        }
        Some(block)
    }

    /// Lets a block wait until a tick. Its mappings are gone.
    pub(crate) fn cool(&mut self, block: u32, until: u32) {
        let state = &mut self.blocks[block as usize];
        state.owner = NONE;
        state.next = NONE;
        if self.is_dynamic(block) {
            self.cooling.push_back((block, until));
        }
    }

    /// Gives back blocks whose time is over.
    pub(crate) fn warm(&mut self, tick: u32) {
        while let Some(&(block, until)) = self.cooling.front()
            && until <= tick
        {
            self.cooling.pop_front();
            self.give_back(block);
        }
    }

    /// When the first waiting block is free.
    pub(crate) fn next_warm(&self) -> Option<u32> {
        self.cooling.front().map(|&(_, until)| until)
    }

    fn give_back(&mut self, block: u32) {
        let address = self.address_of(block);
        let state = &mut self.addresses[address as usize];
        self.blocks[block as usize].next = state.free;
        state.free = block;
        state.free_count += 1;
        self.open(address);
    }

    /// Blocks on demand: free, waiting, all.
    pub(crate) fn levels(&self) -> (u32, u32, u32) {
        let free = self.open.iter();
        let free = free.map(|&at| self.addresses[at as usize].free_count).sum();
        let dynamic = 1 + self.layout.ratio()..self.layout.per_address;
        let blocks = |address| {
            dynamic
                .clone()
                .filter(move |&own| self.layout.has(address, own))
        };
        let open = (0..).zip(&self.addresses).filter(|(_, one)| one.is_open);
        let all = open
            .map(|(address, _)| blocks(address).count() as u32)
            .sum();
        (free, self.cooling.len() as u32, all)
    }
}
