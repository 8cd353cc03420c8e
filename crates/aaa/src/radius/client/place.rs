//! Finds a server and an identifier for a request, and encodes the request for that server.
//!
//! Implements parts of RFC 2866, section 5.2.

use base::slab::Key;
use base::timer::TimerStore;
use base::{Duration, Instant};
use wire::radius::attribute::{
    ACCT_DELAY_TIME, EVENT_TIMESTAMP, MESSAGE_AUTHENTICATOR, USER_PASSWORD,
};
use wire::radius::secret::reveal_password;
use wire::radius::{Attributes, Packet, Writer, code};

use super::{Client, Place, Server};
use crate::radius::event::Purpose;
use crate::radius::request::write_password;

impl Client {
    /// A server for a request, other than those in `tried`: the first live one with a free identifier. A dead
    /// server is probed with one request per dead time. If all are dead, the one whose last failure is oldest.
    /// `None` if all have as many requests as they can take, or none is left to try.
    pub(super) fn find_place(
        &mut self,
        now: Instant,
        purpose: Purpose,
        tried: u16,
    ) -> Option<Place> {
        if self.totals.outstanding >= self.config.outstanding_max {
            return None;
        }
        let index = self.choose(now, purpose, tried)?;
        let dead_time = self.servers[index].config.dead_time;
        let server = index as u8;
        let service = self.service(purpose, server);
        service.try_it(now, dead_time);
        let identifier = service.identifiers.take()?;
        Some(Place { server, identifier })
    }

    fn choose(&self, now: Instant, purpose: Purpose, tried: u16) -> Option<usize> {
        let candidates = || {
            let is_untried = move |&(index, _): &(usize, &Server)| tried & (1 << index) == 0;
            let servers = self.servers.iter().enumerate().filter(is_untried);
            servers.filter_map(move |(index, server)| {
                Some((index, server.services[purpose as usize].as_ref()?))
            })
        };
        let mut has_living = false;
        for (index, service) in candidates() {
            has_living |= service.dead_since().is_none();
            if service.is_worth_trying(now) && service.identifiers.has_free() {
                return Some(index);
            }
        }
        if has_living {
            return None;
        }
        candidates()
            .filter(|(_, service)| service.identifiers.has_free())
            .min_by_key(|(_, service)| service.failed_at())
            .map(|(index, _)| index)
    }

    /// Whether an untried live server is left for a request.
    pub(super) fn has_better(&self, purpose: Purpose, server: u8, tried: u16) -> bool {
        let tried = tried | 1 << server;
        self.servers.iter().enumerate().any(|(index, server)| {
            let service = server.services[purpose as usize].as_ref();
            tried & (1 << index) == 0
                && service.is_some_and(|service| service.dead_since().is_none())
        })
    }

    /// Whether any untried server is left for a request.
    pub(super) fn has_untried(&self, purpose: Purpose, tried: u16) -> bool {
        self.servers.iter().enumerate().any(|(index, server)| {
            tried & (1 << index) == 0 && server.services[purpose as usize].is_some()
        })
    }

    /// Sends a request for the first time at its new server, for which it has been encoded.
    pub(super) fn enter(&mut self, now: Instant, key: Key, place: Place) {
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        let purpose = request.purpose;
        request.place = Some(place);
        request.transmissions = 0;
        self.totals.outstanding += 1;
        let service = self.service(purpose, place.server);
        service.identifiers.assign(place.identifier, key.index);
        service.counters.requests += 1;
        let timeout = self.servers[usize::from(place.server)].config.timeout;
        self.send(now, key, timeout);
    }

    /// Sends a request's datagram unchanged, and sets its timer to about that long.
    pub(super) fn send(&mut self, now: Instant, key: Key, patience: Duration) {
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        self.timers.cancel(request.timer);
        request.patience = patience;
        request.transmissions = request.transmissions.saturating_add(1);
        request.sent_at = now;
        request.timer = self
            .timers
            .insert(now + self.random.about(patience), key.index);
        if !request.is_ready {
            request.is_ready = true;
            self.ready.push_back(key);
        }
    }

    /// Frees an identifier.
    pub(super) fn leave(&mut self, purpose: Purpose, place: Place) {
        self.totals.outstanding -= 1;
        let service = self.service(purpose, place.server);
        service.identifiers.release(place.identifier);
    }

    /// Gives free identifiers to waiting requests.
    pub(super) fn admit(&mut self, now: Instant) {
        for purpose in Purpose::ALL {
            while let Some(&key) = self.waiting[purpose as usize].front() {
                let Some(request) = self.requests.get(key) else {
                    self.waiting[purpose as usize].pop_front();
                    continue;
                };
                let Some(place) = self.find_place(now, purpose, request.tried) else {
                    break;
                };
                self.waiting[purpose as usize].pop_front();
                self.totals.waiting -= 1;
                self.rewrite(now, key, place);
                self.enter(now, key, place);
            }
        }
    }

    /// Encodes a request again for another server.
    pub(super) fn rewrite(&mut self, now: Instant, key: Key, place: Place) {
        let mut datagram = self.buffer();
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        let last = core::mem::take(&mut request.datagram);
        let last_server = request.written_for.replace(place.server);
        let wall_s = request.wall_s + (now - request.taken_at).as_nanos() / 1_000_000_000;
        let packet = Packet::parse(&last).expect("what we wrote is a packet");
        match request.purpose {
            Purpose::Accounting => {
                self.write_account(&mut datagram, Some(place), packet.attributes(), wall_s);
            }
            Purpose::Authentication => {
                self.write_again(&mut datagram, &packet, last_server, Some(place))
            }
        }
        if let Some(request) = self.requests.get_mut(key) {
            request.datagram = datagram;
        }
        self.keep_buffer(last);
    }

    /// Encodes an Access-Request again: its password hidden with another secret, or with the client's own key, and a
    /// new authenticator.
    pub(super) fn write_again(
        &mut self,
        out: &mut Vec<u8>,
        packet: &Packet<'_>,
        last_server: Option<u8>,
        place: Option<Place>,
    ) {
        let authenticator = self.random.bytes();
        let secret_of = |server: Option<u8>| match server {
            Some(server) => self.servers[usize::from(server)].secret(),
            None => &self.seal,
        };
        let last_secret = secret_of(last_server);
        let secret = secret_of(place.map(|place| place.server));
        let id = place.map_or(0, |place| place.identifier.id);
        let mut writer = Writer::new(out, code::ACCESS_REQUEST, id, &authenticator);
        writer.message_authenticator();
        for attribute in packet.attributes() {
            match attribute.kind {
                MESSAGE_AUTHENTICATOR => {}
                USER_PASSWORD => {
                    let last = packet.authenticator();
                    let password = reveal_password(attribute.value, last_secret, &last);
                    let password = password.expect("it was hidden here");
                    write_password(writer.list(), &password, secret, &authenticator);
                }
                kind => {
                    writer.attribute(kind, attribute.value);
                }
            }
        }
        writer.finish(secret).expect("it is as long as before");
    }

    /// Encodes an Accounting-Request for a record, given now or earlier. While waiting it needs no identifier
    /// and no secret.
    pub(super) fn write_account(
        &self,
        out: &mut Vec<u8>,
        place: Option<Place>,
        attributes: Attributes<'_>,
        wall_s: u64,
    ) {
        let (id, secret) = match place {
            Some(place) => {
                let secret = self.servers[usize::from(place.server)].secret();
                (place.identifier.id, secret)
            }
            None => (0, &self.seal[..]),
        };
        let mut writer = Writer::new(out, code::ACCOUNTING_REQUEST, id, &[0; 16]);
        if self.config.acct_delay_time {
            for attribute in attributes {
                if attribute.kind != ACCT_DELAY_TIME {
                    writer.attribute(attribute.kind, attribute.value);
                }
            }
            if let Some(delay_s) = delay(attributes, wall_s) {
                writer.integer(ACCT_DELAY_TIME, delay_s);
            }
        } else {
            writer.list().encoded(attributes);
        }
        let finished = writer.finish_signed(secret);
        finished.expect("room for Acct-Delay-Time was left free");
    }
}

/// How long a record has been waiting to reach a server, if at least a second.
fn delay(mut attributes: Attributes<'_>, wall_s: u64) -> Option<u32> {
    let happened = attributes.find(|attribute| attribute.kind == EVENT_TIMESTAMP)?;
    let delay_s = wall_s.saturating_sub(u64::from(happened.integer()?));
    (delay_s > 0).then(|| u32::try_from(delay_s).unwrap_or(u32::MAX))
}
