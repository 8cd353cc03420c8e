//! Receives the kernel's notifications about links, addresses and routes.
//!
//! The notifications go to the two parts that compare the wanted state with the kernel's state:
//! `kernel` for the TUN device, and `routes` for learned routes. Start reading at `Notices::read`.

use std::io;

use reactor::netlink::{Monitor, Notice};
use reactor::{Interest, Reactor, Token};

use super::source::Source;

/// Datagrams of notifications read in a turn.
const READS: usize = 64;

/// The socket that receives notifications.
#[derive(Default)]
pub(super) struct Notices {
    monitor: Option<(Monitor, Token)>,
    /// Our netlink sockets whose changes of routes are no news.
    own: Vec<u32>,
    read: Vec<Notice>,
}

impl Notices {
    /// Opens the socket. Changes by the netlink sockets `own` are left out.
    pub(super) fn open(own: Vec<u32>, reactor: &mut Reactor) -> io::Result<Self> {
        let mut notices = Self {
            own,
            ..Self::default()
        };
        notices.reopen(reactor)?;
        Ok(notices)
    }

    /// Opens the socket, again after a failure. The first notice is then [`Notice::Overflow`], since
    /// notifications were missed meanwhile.
    pub(super) fn reopen(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        let monitor = Monitor::open(&self.own)?;
        let source = Source::Kernel.to_bits();
        let token = reactor.add(&monitor, "netlink", source, Interest::READ)?;
        self.monitor = Some((monitor, token));
        Ok(())
    }

    /// Closes the socket after a failure.
    pub(super) fn lose(&mut self, reactor: &mut Reactor) {
        if let Some((_, token)) = self.monitor.take() {
            reactor.remove(token);
        }
    }

    /// Reads pending notifications.
    pub(super) fn read(&mut self) -> io::Result<&[Notice]> {
        self.read.clear();
        if let Some((monitor, _)) = &mut self.monitor {
            for _ in 0..READS {
                if !monitor.read(&mut self.read)? {
                    break;
                }
            }
        }
        if self.read.contains(&Notice::Overflow) {
            tracing::info!("notifications of the kernel were lost; comparing everything");
        }
        Ok(&self.read)
    }
}
