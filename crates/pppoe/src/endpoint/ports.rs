//! Interfaces, and a new configuration.

use base::Instant;

use super::Endpoint;
use super::parting::Parting;
use crate::blacklist::Blacklist;
use crate::config::{Config, PortConfig};
use crate::route::Route;
use crate::session::Role;

impl Endpoint {
    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the configuration. Sessions that exist keep what they have; limits apply to new ones.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::validate`].
    pub fn set_config(&mut self, config: Config) {
        config.validate().expect("the configuration was validated");
        if config.blacklist != self.config.blacklist {
            self.blacklist = Blacklist::new(&config.blacklist, self.random.u64());
        }
        self.config = config;
    }

    /// Adds a port, or changes it if it exists. `port` is the owner's number for an interface; small numbers need less
    /// memory.
    ///
    /// # Panics
    /// If `config` does not pass [`PortConfig::validate`].
    pub fn add_port(&mut self, port: u16, config: PortConfig) {
        config.validate().expect("the configuration was validated");
        let place = usize::from(port);
        if place >= self.ports.len() {
            self.ports.resize_with(place + 1, || None);
        }
        self.ports[place] = Some(Box::new(config));
    }

    /// Changes a port. Sessions that exist keep what they have.
    ///
    /// # Panics
    /// If `config` does not pass [`PortConfig::validate`].
    pub fn set_port(&mut self, port: u16, config: PortConfig) {
        self.add_port(port, config);
    }

    /// Removes a port, because its interface is gone. Its sessions end without a PADT, which nobody would receive, some
    /// at a time: see [`Endpoint::lose`]. Does nothing if there is no such port.
    pub fn remove_port(&mut self, port: u16, now: Instant) {
        let place = self.ports.get_mut(usize::from(port));
        if place.and_then(Option::take).is_some() {
            let is_gone = |route: &Route| route.port == port;
            self.drop_delayed(is_gone);
            self.part(Parting::Port, now, |one| is_gone(&one.route));
        }
    }

    /// Ends the sessions of hosts whose routes are gone, for example because a VLAN was removed, without a PADT. Drops the
    /// PADOs that wait for them. Client sessions stay.
    ///
    /// Visits every session of the endpoint once to find them. They end by later calls of
    /// [`Endpoint::handle_timeouts`], of which each ends as many as its caller asks for;
    /// [`Machine::poll_timeout`](base::Machine::poll_timeout) is due until all have ended.
    pub fn lose(&mut self, is_gone: impl Fn(&Route) -> bool, now: Instant) {
        self.drop_delayed(&is_gone);
        self.part(Parting::Vlan, now, |one| {
            one.role == Role::Server && is_gone(&one.route)
        });
    }

    /// A port's configuration.
    #[must_use]
    pub fn port(&self, port: u16) -> Option<&PortConfig> {
        self.ports.get(usize::from(port))?.as_deref()
    }

    /// The AC-Name at a port.
    pub(super) fn ac_name<'a>(&'a self, port: &'a PortConfig) -> &'a [u8] {
        port.ac_name.as_deref().unwrap_or(&self.config.ac_name)
    }

    /// The Service-Names offered at a port; none: any name is accepted.
    pub(super) fn services<'a>(&'a self, port: &'a PortConfig) -> &'a [Box<[u8]>] {
        port.services.as_deref().unwrap_or(&self.config.services)
    }

    /// Whether a Service-Name is accepted at a port.
    pub(super) fn accepts(&self, port: &PortConfig, name: &[u8]) -> bool {
        if name.is_empty() {
            return self.config.accept_any_service;
        }
        let services = self.services(port);
        services.is_empty() || services.iter().any(|service| **service == *name)
    }
}
