//! Replaces the RADIUS servers of a client while requests are outstanding.
//!
//! A service is one purpose of one server: authentication or accounting. If the address and the secret of a service do
//! not change, its outstanding requests continue. A request at any other service waits for a server of the new
//! configuration, and fails if there is none. Left out: the identity of the client, which a reload does not change.
//! Start reading at [`Client::reload`].

use base::Instant;
use base::slab::Key;
use base::timer::TimerStore;
use wire::radius::Packet;

use super::{Client, Server};
use crate::radius::config::{Config, ConfigError};
use crate::radius::event::{Failure, Purpose};

/// For each old server and purpose, the index of the server that continues it.
type Continued = Vec<[Option<u8>; 2]>;

impl Client {
    /// Replaces the servers and the limits. The identity that requests carry stays.
    ///
    /// # Errors
    /// The configuration is invalid, and nothing changed.
    pub fn reload(&mut self, config: Config, now: Instant) -> Result<(), ConfigError> {
        config.check()?;
        let continued = continued(&self.servers, &config);
        let keys: Vec<Key> = self.requests.iter().map(|(key, _)| key).collect();
        for &key in &keys {
            self.uproot(now, key, &continued);
        }
        let mut servers: Vec<Server> = config.servers.iter().map(Server::new).collect();
        for (old, continued) in self.servers.iter_mut().zip(&continued) {
            for purpose in Purpose::ALL {
                let Some(new) = continued[purpose as usize] else {
                    continue;
                };
                let new = &mut servers[usize::from(new)];
                let mut service = old.services[purpose as usize].take();
                if let Some(service) = &mut service {
                    service.identifiers.set_sockets_max(new.config.sockets_max);
                }
                new.services[purpose as usize] = service;
            }
        }
        self.servers = servers;
        self.config = Config {
            nas: self.config.nas.clone(),
            ..config
        };
        for key in keys {
            let request = self.requests.get(key);
            let waits = request.filter(|request| request.place.is_none());
            if waits.is_some_and(|request| !self.has_untried(request.purpose, 0)) {
                self.fail(now, key, Failure::NoServer);
            }
        }
        self.admit(now);
        Ok(())
    }

    /// Makes a request know the servers by their new indices. It waits again if its server goes.
    fn uproot(&mut self, now: Instant, key: Key, continued: &Continued) {
        let Some(request) = self.requests.get(key) else {
            return;
        };
        let (purpose, place) = (request.purpose, request.place);
        let new = |server: u8| continued[usize::from(server)][purpose as usize];
        let written_for = request.written_for.map(new);
        if written_for == Some(None) {
            self.seal(key);
        }
        let waiting_until = now + self.config.waiting_time;
        if let Some(request) = self.requests.get_mut(key) {
            request.written_for = written_for.flatten();
            let tried =
                (0..continued.len() as u8).filter(|server| request.tried & (1 << server) != 0);
            request.tried = tried
                .filter_map(new)
                .fold(0, |all, server| all | (1 << server));
        }
        let Some(place) = place else { return };
        if let Some(server) = new(place.server) {
            if let Some(request) = self.requests.get_mut(key) {
                request.place = Some(super::Place { server, ..place });
            }
            return;
        }
        self.leave(purpose, place);
        if let Some(request) = self.requests.get_mut(key) {
            request.place = None;
            self.timers.cancel(request.timer);
            request.timer = self.timers.insert(waiting_until, key.index);
        }
        self.wait(key);
    }

    /// Hides a request's password with the client's own key, because the secret that hides it goes.
    fn seal(&mut self, key: Key) {
        let mut datagram = self.buffer();
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        let last_server = request.written_for.take();
        if request.purpose == Purpose::Accounting {
            return self.keep_buffer(datagram);
        }
        let last = core::mem::take(&mut request.datagram);
        let packet = Packet::parse(&last).expect("what we wrote is a packet");
        self.write_again(&mut datagram, &packet, last_server, None);
        if let Some(request) = self.requests.get_mut(key) {
            request.datagram = datagram;
        }
        self.keep_buffer(last);
    }
}

fn continued(old: &[Server], new: &Config) -> Continued {
    let one = |old: &Server, purpose: Purpose| {
        let address = old.services[purpose as usize].as_ref()?.address;
        let is_same = |new: &crate::radius::ServerConfig| {
            let new_address = match purpose {
                Purpose::Authentication => new.authentication,
                Purpose::Accounting => new.accounting,
            };
            new_address == Some(address) && new.secret == old.config.secret
        };
        let place = new.servers.iter().position(is_same)?;
        Some(place as u8)
    };
    let both = |old: &Server| Purpose::ALL.map(|purpose| one(old, purpose));
    old.iter().map(both).collect()
}
