//! Changes of settings while the NAT works. Nothing that exists ends by them.

use super::{Nat, Ticks};
use crate::config::{ADDRESSES_MAX, Config, ConfigError};

impl Nat {
    /// Takes other settings. Time-outs apply from a mapping's next timer on, limits to new mappings and blocks. Blocks of
    /// external addresses that the settings have no more stay with their subscribers until they are freed; their
    /// subscribers get new mappings at another address.
    ///
    /// The seed, and the sizes of tables of fragments, stay as they are.
    ///
    /// # Errors
    /// Nothing changed: settings that contradict each other, or [`ConfigError::Fixed`] if the first port, the size of
    /// blocks, the deterministic mode, its addresses, or the size of a table differ.
    pub fn reconfigure(&mut self, config: Config) -> Result<(), ConfigError> {
        config.check()?;
        let old = &self.config;
        let (old_limits, limits) = (old.limits, config.limits);
        let is_deterministic = config.deterministic.is_some();
        let is_same = old.port_first == config.port_first
            && old.block_ports == config.block_ports
            && old.deterministic == config.deterministic
            && (!is_deterministic || old.externals == config.externals)
            && old_limits.mappings_max == limits.mappings_max
            && old_limits.sessions_max == limits.sessions_max
            && old_limits.subscribers_max == limits.subscribers_max;
        if !is_same {
            return Err(ConfigError::Fixed);
        }
        if old.externals != config.externals {
            let all = self.pool.addresses_with(&config.externals);
            if all > ADDRESSES_MAX {
                return Err(ConfigError::ManyExternals(all));
            }
            self.pool.set_externals(&config.externals);
        }
        self.ticks = Ticks::of(&config);
        self.is_plain = super::quick::is_plain(&config);
        let seed = self.config.seed;
        self.config = Config { seed, ..config };
        Ok(())
    }
}
