//! What the daemon does with PPPoE interfaces: it binds and serves them, applies a new configuration, and dials as a
//! client.

use edge::access::Either::Second;

use super::core::Core;
use super::source::Source;
use crate::config::{Pppoe, VlanRange};

/// Linux sends frames of the MTU and one 802.1Q tag through a packet socket; with an outer tag of 802.1ad, both tags count.
const TWO_TAGS: u16 = 8;

impl Core {
    /// Binds every PPPoE interface. One that is not there is bound later.
    pub(super) fn bind_ports(&mut self) {
        for number in 0..self.ports.len() as u32 {
            if let Err(error) = self.bind_port(number) {
                let name = self.ports.name(number).unwrap_or_default();
                let name = || format!("pppoe {name}");
                self.health
                    .lost(Source::Port(number), name, &error, self.now);
            }
        }
    }

    /// Binds a PPPoE interface, and lets the endpoint serve it.
    ///
    /// # Errors
    /// The interface is not there, is down or is no Ethernet interface.
    pub(super) fn bind_port(&mut self, number: u32) -> std::io::Result<()> {
        self.ports.bind(number, &mut self.reactor)?;
        self.serve_port(number);
        self.shards.bind_port(number);
        self.redial.hurry(self.now);
        Ok(())
    }

    /// The interface of a route with its VLANs, such as `eth1.100`.
    pub(super) fn line_name(&self, route: pppoe::Route) -> String {
        let name = self.ports.name(route.port.into()).unwrap_or("?");
        match route.vlans.is_none() {
            true => name.to_owned(),
            false => format!("{name}.{}", route.vlans),
        }
    }

    /// Applies another configuration of PPPoE to the interfaces that are there.
    pub(super) fn reload_pppoe(&mut self, new: &Pppoe) {
        let endpoint = self.edge.endpoint_mut().pppoe_mut();
        endpoint.set_config(new.config.clone());
        for one in &new.interfaces {
            if let Some(number) = self.ports.number(&one.name) {
                let differ = self.ports.set_vlans(number, &one.vlans);
                self.serve(number.into(), one.port.clone());
                if !differ {
                    continue;
                }
                let is_gone = |route: &pppoe::Route| {
                    let is_served = |range: &VlanRange| range.contains(route.vlans);
                    route.port == number && !one.vlans.iter().any(is_served)
                };
                let endpoint = self.edge.endpoint_mut().pppoe_mut();
                endpoint.lose(is_gone, self.now);
            }
        }
    }

    /// Gives the endpoint the configuration of a bound interface, and its MTU.
    pub(super) fn serve_port(&mut self, number: u32) {
        let Some(name) = self.ports.name(number) else {
            return;
        };
        let interfaces = self.running.settings.pppoe_interfaces();
        if let Some(one) = interfaces.into_iter().find(|one| one.name == name) {
            self.serve(number, one.port);
        }
    }

    fn serve(&mut self, number: u32, port: pppoe::PortConfig) {
        let Some(mtu) = self.ports.mtu(number) else {
            return;
        };
        let config = pppoe::PortConfig {
            // 576 is the least that the endpoint takes; Ethernet has no smaller one.
            mtu: mtu.clamp(576, 65_535) as u16,
            two_tags_take: TWO_TAGS,
            ..port
        };
        let endpoint = self.edge.endpoint_mut().pppoe_mut();
        endpoint.add_port(number as u16, config);
    }

    /// Dials if that is due.
    pub(super) fn redial(&mut self) {
        let now = self.now;
        if self.redial.due().is_none_or(|at| at > now) {
            return;
        }
        if self.stop_at.is_some() {
            self.redial.line = None;
        }
        let Some(line) = &mut self.redial.line else {
            return;
        };
        let port = self.ports.number(&line.interface);
        let bound = port.filter(|&port| self.ports.mtu(port.into()).is_some());
        let (Some(port), Some(dialler)) = (bound, &mut self.client) else {
            line.wait(&"the interface is not there", now);
            return;
        };
        let endpoint = self.edge.endpoint_mut().pppoe_mut();
        match endpoint.dial(port, line.vlans, line.dial.clone(), now) {
            Ok(session) => {
                line.session = Some(session);
                self.edge.dial(Second(session), dialler.next(), now);
            }
            Err(error) => line.wait(&error, now),
        }
    }
}
