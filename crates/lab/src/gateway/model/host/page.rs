//! Loads a page over six connections: the page itself first, then its objects, as `traffic::page`
//! does.

use std::net::{Ipv4Addr, SocketAddrV4};

use base::Instant;

use super::{EPHEMERAL, Host, REQUEST, WEB};
use crate::gateway::traffic::page::{OBJECT_OCTETS, OBJECTS};

/// Number of connections of a page load.
const LOADERS: u16 = 6;

/// A page being loaded.
#[derive(Debug)]
pub(super) struct Page {
    begin: Instant,
    first_port: u16,
    asked: usize,
    done: usize,
}

impl Host {
    /// Starts to load a page; false if one is already being loaded.
    pub(in super::super) fn load(&mut self, server: Ipv4Addr, now: Instant) -> bool {
        if self.page.is_some() {
            return false;
        }
        let remote = SocketAddrV4::new(server, WEB);
        if self.next_port > u16::MAX - LOADERS {
            self.next_port = EPHEMERAL;
        }
        let first_port = self.next_port;
        for _ in 0..LOADERS {
            self.open(remote, now);
        }
        self.page = Some(Page {
            begin: now,
            first_port,
            asked: 0,
            done: 0,
        });
        self.ask(first_port, remote, now);
        self.drain();
        true
    }

    /// Closes the connections of a page, whether it has loaded or not.
    pub(in super::super) fn give_up(&mut self) {
        if self.page.take().is_none() {
            return;
        }
        // The last acknowledgements are sent first.
        self.drain();
        let keys = self.connections.keys().copied();
        let ours: Vec<_> = keys.filter(|(_, remote)| remote.port() == WEB).collect();
        for (port, remote) in ours {
            self.connections.remove(&(port, remote));
            self.reset(port, remote);
        }
    }

    /// Requests the next object on an idle connection; the page itself comes first, on the first
    /// connection.
    fn ask(&mut self, port: u16, remote: SocketAddrV4, now: Instant) {
        let (Some(page), Some(connection)) =
            (&mut self.page, self.connections.get_mut(&(port, remote)))
        else {
            return;
        };
        // The objects are known only after the page has loaded.
        let may = page.asked == 0 && port == page.first_port || page.asked > 0 && page.done > 0;
        if may && connection.wanted.is_none() && page.asked <= OBJECTS {
            page.asked += 1;
            connection.wanted = Some(connection.tcp.delivered() + OBJECT_OCTETS as u64);
            connection.tcp.write(REQUEST, now);
        }
    }

    pub(super) fn object_is_there(&mut self, remote: SocketAddrV4, now: Instant) {
        let Some(page) = &mut self.page else { return };
        page.done += 1;
        if page.done > OBJECTS {
            self.loads.push(now.since(page.begin));
            self.give_up();
            return;
        }
        let first = page.first_port;
        for port in first..first.saturating_add(LOADERS) {
            self.ask(port, remote, now);
        }
    }
}
