//! Adds and removes listen addresses while the daemon runs.
//!
//! The socket of a removed address accepts no new tunnel. Existing tunnels continue on the socket,
//! and it is closed after the last of them. Start with [`Sockets::reload`].

use std::io;
use std::net::SocketAddr;

use reactor::Reactor;
use wire::l2tp::{Packet, parse};

use super::{End, Shared, Sockets, Stage};
use crate::config::{Event, Listen};

/// An address that could not be bound, and why.
pub(crate) type Unbound = (SocketAddr, io::Error);

impl Sockets {
    /// Listens on these addresses and no others. `tunnels` counts the tunnels that use a socket.
    ///
    /// # Errors
    /// The first address that could not be bound. The addresses are then those of before.
    pub(crate) fn reload(
        &mut self,
        end: End,
        wanted: &[Listen],
        tunnels: impl Fn(u32) -> usize,
        event: &Event,
        reactor: &mut Reactor,
    ) -> Result<(), Unbound> {
        let before: Vec<Listen> = self.listened(end);
        let done = self.set_addresses(end, wanted, &tunnels, event, reactor);
        if done.is_err()
            && let Err((address, error)) =
                self.set_addresses(end, &before, &tunnels, event, reactor)
        {
            tracing::error!(%address, %error, "cannot listen there any more");
        }
        done
    }

    fn listened(&self, end: End) -> Vec<Listen> {
        let is_open = |shared: &&Shared| shared.end == end && shared.stage == Stage::Open;
        let open = self.shared.iter().filter(is_open);
        let listen = |shared: &Shared| Listen {
            addr: shared.listen,
            optional: false,
        };
        open.map(listen).collect()
    }

    fn set_addresses(
        &mut self,
        end: End,
        wanted: &[Listen],
        tunnels: &impl Fn(u32) -> usize,
        event: &Event,
        reactor: &mut Reactor,
    ) -> Result<(), Unbound> {
        let mut wanted = wanted.to_vec();
        for number in 0..self.shared.len() {
            let shared = &self.shared[number];
            if shared.end != end || shared.stage == Stage::Closed {
                continue;
            }
            match wanted.iter().position(|new| new.addr == shared.listen) {
                Some(place) => {
                    wanted.remove(place);
                    self.shared[number].stage = Stage::Open;
                }
                None => self.leave(number as u32, tunnels(number as u32), reactor),
            }
        }
        for new in wanted {
            let opened = self.open_shared(end, new, event, reactor);
            opened.map_err(|error| (new.addr, error))?;
        }
        Ok(())
    }

    /// Accepts no new tunnel on a socket that so many tunnels use.
    fn leave(&mut self, number: u32, tunnels: usize, reactor: &mut Reactor) {
        let Some(shared) = self.shared.get_mut(number as usize) else {
            return;
        };
        shared.stage = Stage::Leaving { tunnels };
        self.has_left = true;
        let address = shared.socket.local_addr();
        if tunnels > 0 {
            tracing::info!(%address, tunnels, "no new tunnels there; closed after the last one");
            return;
        }
        tracing::info!(%address, "no longer listening");
        self.lose(number, reactor);
        self.shared[number as usize].stage = Stage::Closed;
    }

    /// A tunnel on a socket is gone. `tunnels` counts those that still use it.
    pub(crate) fn left(&mut self, number: u32, tunnels: impl Fn() -> usize, reactor: &mut Reactor) {
        if !self.has_left {
            return;
        }
        let Some(shared) = self.shared.get_mut(number as usize) else {
            return;
        };
        if let Stage::Leaving { tunnels: left } = &mut shared.stage {
            *left = left.saturating_sub(1);
            // The count may include tunnels that had ended before, so that it is taken again.
            if *left == 0 {
                self.leave(number, tunnels(), reactor);
            }
        }
    }

    /// Whether a datagram asks for a tunnel on a socket whose address was removed.
    pub(crate) fn refuses(&self, number: u32, bytes: &[u8]) -> bool {
        if !self.has_left {
            return false;
        }
        let shared = self.shared.get(number as usize);
        let has_left = shared.is_some_and(|shared| shared.stage != Stage::Open);
        has_left && matches!(parse(bytes), Ok(Packet::Control(control)) if control.connection == 0)
    }
}
