//! The two functions of RFC 7422 section 2 between an inside address and its ports, and the record of section 3.

use core::fmt::Write;
use std::net::Ipv4Addr;

use crate::config::{Config, Deterministic};
use crate::nat::Nat;
use crate::range::Range;

impl Deterministic {
    /// The place of an inside address among all of them.
    pub(crate) fn position(&self, inside: u32) -> Option<u64> {
        let mut before = 0;
        for range in &self.inside {
            if let Some(at) = range.position(inside) {
                return Some(before + u64::from(at));
            }
            before += range.len();
        }
        None
    }

    /// The inside address at a place.
    fn at(&self, mut position: u64) -> Option<Ipv4Addr> {
        for range in &self.inside {
            if position < range.len() {
                return Some((range.first().to_bits() + position as u32).into());
            }
            position -= range.len();
        }
        None
    }
}

impl Nat {
    /// Function 1 of RFC 7422: the external address and the first and last port of an inside address.
    #[must_use]
    pub fn deterministic_ports(&self, inside: Ipv4Addr) -> Option<(Ipv4Addr, u16, u16)> {
        let (address, block) = self.share(inside.to_bits())?;
        let (first, count) = self.pool().ports_of(block);
        let last = (u32::from(first) + count - 1) as u16;
        Some((self.pool().external(address).into(), first, last))
    }

    /// Function 2 of RFC 7422: the inside address of an external address and port; `None` for reserved and dynamic ports,
    /// whose allocation the log has.
    #[must_use]
    pub fn deterministic_inside(&self, external: Ipv4Addr, port: u16) -> Option<Ipv4Addr> {
        let deterministic = self.config().deterministic.as_ref()?;
        let pool = self.pool();
        let address = pool.index_of(external.to_bits())?;
        let (block, _) = pool.layout.block_of(address, port)?;
        if block == 0 || pool.layout.is_dynamic(block) {
            return None;
        }
        let ratio = u64::from(pool.layout.ratio());
        deterministic.at(u64::from(address) * ratio + u64::from(block) - 1)
    }
}

/// The settings that a later reader of the log needs, in the form of RFC 7422 section 3, without the time: inside ranges,
/// external ranges, D, M (ports of a share and of all blocks on demand), A, and the reserved ports.
///
/// The RFC's form has prefixes; ours has ranges, which need not be prefixes. Log it at each start, each change, and once a
/// day.
#[must_use]
pub fn record(config: &Config) -> Option<String> {
    let deterministic = config.deterministic.as_ref()?;
    let list = |ranges: &[Range]| {
        let texts = ranges.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>().join(",")
    };
    let share = crate::layout::Layout::new(config).size_of(1);
    let blocks = u32::from(config.limits.blocks_per_subscriber) * u32::from(config.block_ports);
    let most = match deterministic.dynamic {
        0 => share,
        _ => share + blocks,
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "{}:{}:{}:{most}:0:0-{}",
        list(&deterministic.inside),
        list(&config.externals),
        deterministic.dynamic,
        config.port_first - 1,
    );
    Some(text)
}
