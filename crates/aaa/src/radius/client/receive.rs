//! Handles a datagram that is, or claims to be, a reply.
//!
//! Implements parts of RFC 2865, sections 2.1, 4.3 and 4.4; RFC 2866, section 4.2; RFC 3579, sections 2 and 3.2.

use base::slab::Key;
use base::{Datagram, Instant};
use wire::radius::secret::{Signature, signature, verify_reply};
use wire::radius::{Authenticator, HEADER, Packet, code};

use super::Client;
use crate::radius::accept::{read_accept, read_message};
use crate::radius::event::{Discard, Event, Purpose, Rejection};
use crate::radius::identifiers::Identifier;
use crate::radius::proof::{self, Way};
use crate::radius::tunnels::Salted;

impl Client {
    /// Ends the request that a datagram answers, or ignores the datagram.
    pub(super) fn receive(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        let Some((server, purpose)) = self.find_server(&input) else {
            self.totals.unknown_server += 1;
            return Err(Discard::UnknownServer);
        };
        let (packet, key) = match self.check(server, purpose, &input) {
            Ok(found) => found,
            Err(why) => return Err(self.service(purpose, server).discard(why)),
        };
        self.finish(now, server, key, &packet);
        Ok(())
    }

    fn find_server(&self, input: &Datagram<'_>) -> Option<(u8, Purpose)> {
        let peer = input.route.peer;
        let is_it = |address: core::net::SocketAddr| {
            address.port() == peer.port() && address.ip().to_canonical() == peer.ip().to_canonical()
        };
        let mut services = self.services_by_purpose();
        let (index, _, purpose, _) = services.find(|(.., service)| is_it(service.address))?;
        Some((index as u8, purpose))
    }

    /// The request that a datagram answers, if any.
    fn check<'d>(
        &mut self,
        server: u8,
        purpose: Purpose,
        input: &Datagram<'d>,
    ) -> Result<(Packet<'d>, Key), Discard> {
        // A reply without valid lengths has an identifier all the same.
        let id = input.bytes.get(1).copied();
        let key = id.and_then(|id| self.find_request(server, purpose, input.route.socket, id));
        let checked = self.check_reply(server, purpose, input.bytes, key);
        if let Err(why) = checked
            && let Some(request) = key.and_then(|key| self.requests.get_mut(key))
        {
            request.ignored.count(why);
        }
        checked
    }

    /// The request with this identifier on this socket.
    fn find_request(&mut self, server: u8, purpose: Purpose, socket: u32, id: u8) -> Option<Key> {
        let socket = u16::try_from(socket).ok()?;
        let identifiers = &self.service(purpose, server).identifiers;
        let index = identifiers.find(Identifier { socket, id })?;
        self.requests.key_at(index)
    }

    fn check_reply<'d>(
        &self,
        server: u8,
        purpose: Purpose,
        bytes: &'d [u8],
        key: Option<Key>,
    ) -> Result<(Packet<'d>, Key), Discard> {
        let packet = Packet::parse(bytes).map_err(Discard::Malformed)?;
        match (purpose, packet.code()) {
            (
                Purpose::Authentication,
                code::ACCESS_ACCEPT | code::ACCESS_REJECT | code::ACCESS_CHALLENGE,
            )
            | (Purpose::Accounting, code::ACCOUNTING_RESPONSE) => {}
            (Purpose::Authentication | Purpose::Accounting, other) => {
                return Err(Discard::Code(other));
            }
        }
        let key = key.ok_or(Discard::UnknownId)?;
        let config = &self.servers[usize::from(server)].config;
        let request = self.requests.get(key).ok_or(Discard::UnknownId)?;
        let must_sign = purpose == Purpose::Authentication
            && (config.require_message_authenticator || proof::has_eap(&packet));
        let authenticator = authenticator(&request.datagram);
        verify(&packet, &authenticator, config.secret.reveal(), must_sign)?;
        Ok((packet, key))
    }

    /// Ends a request with its reply.
    fn finish(&mut self, now: Instant, server: u8, key: Key, packet: &Packet<'_>) {
        let Some(request) = self.requests.get(key) else {
            return;
        };
        let (purpose, token, way) = (request.purpose, request.token, request.way);
        let request_authenticator = authenticator(&request.datagram);
        let rtt = (request.transmissions == 1).then(|| now - request.sent_at);
        if let Some(rtt) = rtt {
            self.totals.round_trips.record(rtt);
        }
        let service = self.service(purpose, server);
        let was_dead = service.answer(now, rtt);
        let event = match packet.code() {
            code::ACCOUNTING_RESPONSE => {
                service.counters.recorded += 1;
                Event::Recorded { token }
            }
            code::ACCESS_ACCEPT => {
                self.accept(server, (token, way), packet, &request_authenticator)
            }
            code::ACCESS_REJECT => {
                service.counters.rejects += 1;
                Event::Rejected {
                    token,
                    why: Rejection::Server,
                    message: refusal(packet, way),
                }
            }
            _ => {
                service.counters.challenges += 1;
                challenged(packet, server, token, way)
            }
        };
        if was_dead {
            let server = usize::from(server);
            self.events.push_back(Event::ServerUp { server, purpose });
        }
        if let Some(request) = self.remove(now, key) {
            self.keep_buffer(request.datagram);
        }
        self.events.push_back(event);
    }

    fn accept(
        &mut self,
        server: u8,
        (token, way): (u64, Way),
        packet: &Packet<'_>,
        request: &Authenticator,
    ) -> Event {
        let queue = self.config.queue;
        let secret = self.servers[usize::from(server)].config.secret.clone();
        let secret = secret.reveal();
        let salted = Salted { secret, request };
        let counters = &mut self.service(Purpose::Authentication, server).counters;
        let mut message = read_message(packet);
        let mut read = read_accept(packet, queue, Some(salted));
        if way == Way::MsChapV2 {
            match proof::success(packet) {
                Some(success) => {
                    let text = message.map(|text| format!(" M={text}"));
                    message = Some((success.into_string() + &text.unwrap_or_default()).into());
                }
                None => read = read.and(Err(Rejection::NoSuccess)),
            }
        }
        match read {
            Ok(grant) => {
                counters.accepts += 1;
                counters.attributes_ignored += grant.ignored;
                counters.intervals_raised += u64::from(grant.interval_raised);
                counters.queues_left_out += grant.left_out.len() as u64;
                Event::Accepted {
                    token,
                    profile: Box::new(grant.profile),
                    message,
                    left_out: grant.left_out,
                }
            }
            Err(why) => {
                counters.unusable_accepts += 1;
                Event::Rejected {
                    token,
                    why,
                    message,
                }
            }
        }
    }
}

/// The text for a subscriber that was rejected. By MS-CHAP it starts with the server's error code. Whether the subscriber
/// may try again is not the server's to say here: the link ends.
fn refusal(packet: &Packet<'_>, way: Way) -> Option<Box<str>> {
    let text = read_message(packet);
    let error = proof::error(packet).filter(|_| way == Way::MsChapV2);
    let Some((error, own)) = error else {
        return text;
    };
    let text = text.map_or_else(
        || String::from_utf8_lossy(own),
        |text| text.into_string().into(),
    );
    Some(format!("E={error} {text}").into())
}

/// The event of an Access-Challenge: only EAP can ask the subscriber for more.
fn challenged(packet: &Packet<'_>, server: u8, token: u64, way: Way) -> Event {
    match proof::eap_message(packet).filter(|_| way == Way::Eap) {
        Some(request) => Event::Challenged {
            token,
            request,
            state: proof::state(packet, server),
            wait: proof::wait(packet),
        },
        None => Event::Rejected {
            token,
            why: Rejection::Challenge,
            message: read_message(packet),
        },
    }
}

/// Whether the sender of a reply to the request with this authenticator knows the secret.
fn verify(
    packet: &Packet<'_>,
    request: &Authenticator,
    secret: &[u8],
    must_sign: bool,
) -> Result<(), Discard> {
    if !verify_reply(packet, request, secret) {
        return Err(Discard::BadAuthenticator);
    }
    match signature(packet, request, secret) {
        Signature::Right => Ok(()),
        Signature::Missing if !must_sign => Ok(()),
        Signature::Missing => Err(Discard::Unsigned),
        Signature::Wrong => Err(Discard::BadSignature),
    }
}

/// The authenticator of a datagram that we sent.
fn authenticator(datagram: &[u8]) -> Authenticator {
    let mut authenticator = [0; 16];
    if let Some(octets) = datagram.get(4..HEADER) {
        authenticator.copy_from_slice(octets);
    }
    authenticator
}
