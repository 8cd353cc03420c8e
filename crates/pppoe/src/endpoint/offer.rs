//! PADI to PADO: RFC 2516, sections 5.1, 5.2 and 9; RFC 4638, section 4. No PADI leaves state behind, but for a PADO
//! that waits for its delay.

use base::{Duration, Instant};
use wire::pppoe::{Code, Discovery, Vlans, Writer, tag};

use super::tables::{host_hash, vlan_hash};
use super::{Endpoint, PACKET_MAX};
use crate::config::PortConfig;
use crate::discard::Discard;
use crate::route::Route;

impl Endpoint {
    pub(super) fn receive_padi(
        &mut self,
        route: Route,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Discard> {
        self.check_server(&route)?;
        if self.shutting_down {
            return Err(Discard::ShuttingDown);
        }
        // First, so that one host cannot use up the rate of all.
        let per_s = self.config.limits.padis_per_mac_per_s;
        let host = host_hash(&self.hasher, &route);
        if !self.padis_of_hosts.take(host, per_s, now) {
            return Err(Discard::PadiRatePerMac);
        }
        let tags = Discovery::parse(payload)?;
        let name = the_service(&tags)?;
        let port = self.port(route.port).ok_or(Discard::UnknownPort)?;
        if !self.accepts(port, name) {
            return Err(Discard::UnknownService);
        }
        let delay = self.config.delay(self.count()).ok_or(Discard::Busy)?;
        self.check_padi_rate(&route, now)?;
        if delay == Duration::ZERO {
            return self.offer_now(route, &tags, now);
        }
        if self.delayed.len() >= self.config.limits.pados_delayed_max as usize {
            return Err(Discard::DelayedFull);
        }
        let mut pado = Vec::new();
        let port = self.port(route.port).ok_or(Discard::UnknownPort)?;
        self.write_pado(&mut pado, port, &route, &tags, now);
        if pado.len() > PACKET_MAX {
            return Err(Discard::AnswerTooLong);
        }
        self.delay(route, pado.into(), now + delay);
        Ok(())
    }

    /// The limit of the VLAN comes first, so that one VLAN cannot use up the rate of all.
    fn check_padi_rate(&mut self, route: &Route, now: Instant) -> Result<(), Discard> {
        let limits = &self.config.limits;
        let vlan = vlan_hash(&self.hasher, route);
        let per_s = limits.padis_per_vlan_per_s;
        if !self.padis_of_vlans.take(vlan, per_s, now) {
            return Err(Discard::PadiRatePerVlan);
        }
        if !self.padis.take(limits.padis_per_s, now) {
            return Err(Discard::PadiRate);
        }
        Ok(())
    }

    fn offer_now(
        &mut self,
        route: Route,
        tags: &Discovery<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        if !self.outbox.has_room() {
            return Err(Discard::OutboxFull);
        }
        // The buffer is taken out for the time of writing, because that reads the rest.
        let mut outbox = core::mem::take(&mut self.outbox);
        let port = self.port(route.port);
        let has_fit = port.is_some_and(|port| {
            outbox.push(route, PACKET_MAX, |out| {
                self.write_pado(out, port, &route, tags, now);
            })
        });
        self.outbox = outbox;
        if !has_fit {
            return Err(Discard::AnswerTooLong);
        }
        self.counters.sent_pado += 1;
        Ok(())
    }

    /// What a PADI and a PADR need: a port that is a server, and a host that is not blacklisted.
    pub(super) fn check_server(&self, route: &Route) -> Result<(), Discard> {
        match self.port(route.port) {
            None => Err(Discard::UnknownPort),
            Some(port) if !port.server => Err(Discard::NotServer),
            Some(_) if self.blacklist.contains(route.peer) => Err(Discard::Blacklisted),
            Some(_) => Ok(()),
        }
    }

    /// "One AC-Name TAG ..., a Service-Name TAG identical to the one in the PADI, and any number of other Service-Name
    /// TAGs" (RFC 2516, section 5.2).
    fn write_pado(
        &self,
        out: &mut Vec<u8>,
        port: &PortConfig,
        route: &Route,
        tags: &Discovery<'_>,
        now: Instant,
    ) {
        let name = tags.service_name.unwrap_or_default();
        let mut writer = Writer::new(out, Code::PADO, 0);
        writer.tag(tag::AC_NAME, self.ac_name(port));
        writer.tag(tag::SERVICE_NAME, name);
        for other in self.services(port) {
            if **other != *name {
                writer.tag(tag::SERVICE_NAME, other);
            }
        }
        writer.tag(tag::AC_COOKIE, &self.cookies.make(route, now));
        self.write_returned(&mut writer, port, route.vlans, tags);
        writer.finish();
    }

    /// The tags of a request that its answer has as well.
    pub(super) fn write_returned(
        &self,
        writer: &mut Writer<'_>,
        port: &PortConfig,
        vlans: Vlans,
        tags: &Discovery<'_>,
    ) {
        writer.tag_if(tag::HOST_UNIQ, tags.host_uniq);
        writer.tag_if(tag::RELAY_SESSION_ID, tags.relay_session_id);
        // "It MUST respond with an echo of the clients tag", if it can support more than 1492 (RFC 4638, section 4).
        let supported = port.payload_over(tags.max_payload, self.config.max_payload, vlans);
        if let (Some(asked), Some(_)) = (tags.max_payload, supported) {
            writer.tag(tag::PPP_MAX_PAYLOAD, &asked.to_be_bytes());
        }
    }
}

/// The Service-Name of a PADI or PADR, which "MUST contain exactly one" (RFC 2516, sections 5.1 and 5.3).
pub(super) fn the_service<'a>(tags: &Discovery<'a>) -> Result<&'a [u8], Discard> {
    match (tags.service_name, tags.services) {
        (Some(name), 1) => Ok(name),
        _ => Err(Discard::ServiceCount),
    }
}
