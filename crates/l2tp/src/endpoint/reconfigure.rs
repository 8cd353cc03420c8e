//! Applies a new configuration while tunnels are open.
//!
//! Most values are read where they are used, so a new value applies at once. Deadlines that were set before the change
//! are moved here, for some tunnels at a time. Start reading at [`Endpoint::set_config`].

use base::{Duration, Instant};

use super::Endpoint;
use crate::config::Config;
use crate::tunnel::{Ending, TunnelState};

/// Tunnels whose deadlines one call moves.
const SLICE: u32 = 512;

impl Endpoint {
    /// Replaces the configuration. What tables and the other end rely on stays: whether SCCRQs are accepted, the timer
    /// store, the lookup of peers, config ids, our receive window, the length of cookies and the digest.
    ///
    /// A new secret applies to new tunnels; each open tunnel keeps its own.
    /// HELLO intervals and the time without sessions apply to open tunnels too, once [`base::Machine::handle_timeout`]
    /// has come to them.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::validate`].
    pub fn set_config(&mut self, config: Config, now: Instant) {
        let old = &self.config;
        let config = Config {
            accept: old.accept,
            receive_window: old.receive_window,
            timers: old.timers,
            tick: old.tick,
            peer_lookup: old.peer_lookup,
            config_ids: old.config_ids,
            cookie_len: old.cookie_len,
            digest: old.digest,
            ..config
        };
        config.validate().expect("the configuration was validated");
        self.keys.renew(config.secret.as_ref());
        self.config = config;
        self.retiming = Some((now, 0));
    }

    /// Moves the deadlines of the next tunnels, if a new configuration asks for that.
    pub(super) fn retime(&mut self, now: Instant) {
        let Some((since, first)) = self.retiming else {
            return;
        };
        let mut next = first;
        for _ in 0..SLICE {
            let Some((index, _)) = self.tunnels.next_from(next) else {
                self.retiming = None;
                return;
            };
            self.retime_tunnel(index, now);
            next = index + 1;
        }
        self.retiming = Some((since, next));
    }

    fn retime_tunnel(&mut self, index: u32, now: Instant) {
        let hello = self.hello_wait();
        let limit = self.config.idle_tunnel;
        let tunnel = self.tunnel_at_mut(index);
        if tunnel.ending != Ending::No || tunnel.state != TunnelState::Established {
            return;
        }
        if tunnel.reliable.is_closed() {
            // The probe is due at the idle deadline.
            return;
        }
        let next = hello.map(|wait| (tunnel.last_heard + wait).max(now));
        tunnel.idle_deadline = match next {
            None => Instant::FAR_FUTURE,
            Some(next) => tunnel.idle_deadline.min(next),
        };
        if limit == Duration::ZERO {
            tunnel.empty_deadline = Instant::FAR_FUTURE;
        } else if tunnel.sessions == 0 {
            tunnel.empty_deadline = tunnel.empty_deadline.min(now + limit);
        }
        self.mark_ready(index);
    }
}
