//! How the ports of an external address are divided into blocks.
//!
//! Block 0 has the ports below `port_first`, for port forwarding only. With RFC 7422 the next blocks are shares that follow
//! from the inside address; the rest is cut into blocks on demand. A port's block follows by a division, without a table.
//!
//! Of several NATs ([`crate::Share`]) each has every `of`-th block on demand, counted from another one at each address, so
//! that all have about as many. It numbers its own consecutively.

use crate::config::{Config, Division};

/// A divisor with its reciprocal, because a division costs more than all else of finding a port's block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    by: u32,
    reciprocal: u64,
}

impl Divisor {
    const SHIFT: u32 = 40;

    pub(crate) fn new(by: u32) -> Self {
        Self {
            by,
            reciprocal: (1 << Self::SHIFT) / u64::from(by.max(1)) + 1,
        }
    }

    /// Quotient and remainder. `number` is at most 2^40 / `by`, and less than 2^14 * `by` or 2^24.
    #[inline]
    pub(crate) fn divide(self, number: u32) -> (u32, u32) {
        let quotient = ((u64::from(number) * self.reciprocal) >> Self::SHIFT) as u32;
        (quotient, number - quotient * self.by)
    }
}

/// The division of an address's ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    first: u32,
    fixed: u32,
    fixed_ports: Divisor,
    split: u32,
    block_ports: Divisor,
    /// Blocks on demand of an address, those of all NATs.
    dynamic: u32,
    /// Which of how many NATs this is.
    number: u32,
    of: u32,
    /// Blocks of an address that this NAT has a place for, of all three kinds.
    pub(crate) per_address: u32,
    blocks: Divisor,
}

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Forwarding only.
    Low,
    /// In a share that follows from the inside address.
    Fixed,
    /// In a block on demand of the NAT with this number.
    Dynamic(u16),
    /// In no block.
    None,
}

impl Layout {
    pub(crate) fn new(config: &Config) -> Self {
        let Division {
            first,
            fixed,
            fixed_ports,
            split,
            dynamic,
        } = config.division();
        let of = u32::from(config.share.of());
        let per_address = 1 + fixed + dynamic.div_ceil(of);
        Self {
            first,
            fixed,
            fixed_ports: Divisor::new(fixed_ports),
            split,
            block_ports: Divisor::new(config.block_ports.into()),
            dynamic,
            number: u32::from(config.share.number()),
            of,
            per_address,
            blocks: Divisor::new(per_address),
        }
    }

    /// The address of a block of any address, and the block's number there.
    #[inline]
    pub(crate) fn split(&self, block: u32) -> (u32, u32) {
        self.blocks.divide(block)
    }

    /// The block of a port within an address, and the port's place in the block; `None` if this NAT does not have it.
    #[inline]
    pub(crate) fn block_of(&self, address: u32, port: u16) -> Option<(u32, u32)> {
        let port = u32::from(port);
        if port < self.first {
            return Some((0, port));
        }
        if port < self.split {
            let (block, place) = self.fixed_ports.divide(port - self.first);
            return Some((1 + block, place));
        }
        let (mut at, place) = self.block_ports.divide(port - self.split);
        if at >= self.dynamic {
            return None;
        }
        if self.of > 1 {
            if (at + address) % self.of != self.number {
                return None;
            }
            at /= self.of;
        }
        Some((1 + self.fixed + at, place))
    }

    /// What a port of an address is for.
    pub(crate) fn purpose(&self, address: u32, port: u16) -> Purpose {
        let port = u32::from(port);
        if port < self.first {
            return Purpose::Low;
        }
        if port < self.split {
            return Purpose::Fixed;
        }
        let (at, _) = self.block_ports.divide(port - self.split);
        match at < self.dynamic {
            true => Purpose::Dynamic(((at + address) % self.of) as u16),
            false => Purpose::None,
        }
    }

    /// The place of one of this NAT's blocks on demand among those of all.
    #[inline]
    fn place(&self, address: u32, own: u32) -> u32 {
        match self.of {
            1 => own,
            of => own * of + (self.number + of - address % of) % of,
        }
    }

    /// The first port of a block, and how many it has.
    #[inline]
    pub(crate) fn ports_of(&self, address: u32, block: u32) -> (u16, u32) {
        if block == 0 {
            return (0, self.first);
        }
        let (start, size, at) = match block <= self.fixed {
            true => (self.first, self.fixed_ports.by, block - 1),
            false => {
                let at = self.place(address, block - 1 - self.fixed);
                (self.split, self.block_ports.by, at)
            }
        };
        ((start + at * size) as u16, size)
    }

    /// How many ports a block has.
    #[inline]
    pub(crate) fn size_of(&self, block: u32) -> u32 {
        match block {
            0 => self.first,
            block if block <= self.fixed => self.fixed_ports.by,
            _ => self.block_ports.by,
        }
    }

    /// Whether a block is handed out on demand.
    pub(crate) fn is_dynamic(&self, block: u32) -> bool {
        block > self.fixed
    }

    /// Whether this NAT has a block at an address. At some addresses it has one less than it has places for.
    pub(crate) fn has(&self, address: u32, block: u32) -> bool {
        !self.is_dynamic(block) || self.place(address, block - 1 - self.fixed) < self.dynamic
    }

    /// How many inside addresses share an external one by RFC 7422.
    pub(crate) fn ratio(&self) -> u32 {
        self.fixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Share;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_reciprocal_divides_ports_by_any_block(by in 1_u32..=65_536, number in 0_u32..65_536) {
            prop_assert_eq!(Divisor::new(by).divide(number), (number / by, number % by));
        }

        #[test]
        fn settings_are_refused_exactly_if_a_nat_would_have_no_block(
            length in 28_u8..=32,
            block_ports in 4_000_u16..=64_512,
            of in 1_u16..=64,
        ) {
            let externals = vec![format!("192.0.2.0/{length}").parse().unwrap()];
            let config = Config { block_ports, ..Config::new(externals, [1, 2, 3]) };
            let has_block = |number: u16| {
                let config = config.share(Share::new(number, of).unwrap());
                let layout = Layout::new(&config);
                let mut blocks = (0..1 << (32 - length))
                    .flat_map(|address| (1..layout.per_address).map(move |block| (address, block)));
                (blocks.any(|(address, block)| layout.has(address, block)), config.check().is_ok())
            };
            let all: Vec<(bool, bool)> = (0..of).map(has_block).collect();
            let is_each_served = all.iter().all(|one| one.0);
            prop_assert!(all.iter().all(|one| one.1 == is_each_served), "{all:?}");
        }

        #[test]
        fn a_reciprocal_finds_the_address_of_any_block(
            by in 1_u32..=4_097,
            address in 0_u32..16_384,
            block: u32,
        ) {
            let block = block % by;
            let number = address * by + block;
            prop_assert_eq!(Divisor::new(by).divide(number), (address, block));
        }
    }
}
