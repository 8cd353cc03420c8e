//! How the ports of an external address are divided into blocks.
//!
//! Block 0 has the ports below `port_first`, for port forwarding only. With RFC 7422 the next blocks are shares that follow
//! from the inside address; the rest is cut into blocks on demand. A port's block follows by a division, without a table.

use crate::config::Config;
use crate::range::Range;

/// The division of an address's ports, the same for each address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    first: u32,
    fixed: u32,
    fixed_ports: u32,
    split: u32,
    block_ports: u32,
    /// Blocks of an address, of all three kinds.
    pub(crate) per_address: u32,
}

impl Layout {
    pub(crate) fn new(config: &Config) -> Self {
        let first = u32::from(config.port_first);
        let ports = 65_536 - first;
        let block_ports = u32::from(config.block_ports);
        let (fixed, fixed_ports) = match &config.deterministic {
            None => (0, 0),
            Some(deterministic) => {
                let inside: u64 = deterministic.inside.iter().map(Range::len).sum();
                let outside: u64 = config.externals.iter().map(Range::len).sum();
                let ratio = inside.div_ceil(outside) as u32;
                (ratio, ports / (ratio + u32::from(deterministic.dynamic)))
            }
        };
        let split = first + fixed * fixed_ports;
        // Without a dynamic share there are no blocks on demand, even if ports are left over.
        let dynamic = match &config.deterministic {
            Some(deterministic) if deterministic.dynamic == 0 => 0,
            _ => (65_536 - split) / block_ports,
        };
        Self {
            first,
            fixed,
            fixed_ports,
            split,
            block_ports,
            per_address: 1 + fixed + dynamic,
        }
    }

    /// The block of a port within its address, and the port's place in the block.
    #[inline]
    pub(crate) fn block_of(&self, port: u16) -> Option<(u32, u32)> {
        let port = u32::from(port);
        if port < self.first {
            return Some((0, port));
        }
        let (kind, size, offset) = if port < self.split {
            (1, self.fixed_ports, port - self.first)
        } else {
            (1 + self.fixed, self.block_ports, port - self.split)
        };
        let block = kind + offset / size;
        (block < self.per_address).then_some((block, offset % size))
    }

    /// The first port of a block, and how many it has.
    pub(crate) fn ports_of(&self, block: u32) -> (u16, u32) {
        if block == 0 {
            return (0, self.first);
        }
        let (start, size, at) = match block <= self.fixed {
            true => (self.first, self.fixed_ports, block - 1),
            false => (self.split, self.block_ports, block - 1 - self.fixed),
        };
        ((start + at * size) as u16, size)
    }

    /// Whether a block is handed out on demand.
    pub(crate) fn is_dynamic(&self, block: u32) -> bool {
        block > self.fixed
    }

    /// How many inside addresses share an external one by RFC 7422.
    pub(crate) fn ratio(&self) -> u32 {
        self.fixed
    }
}
