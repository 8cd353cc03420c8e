//! A simulated RADIUS server whose faults depend on its current mood.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use base::{Datagram, Duration, Instant, Machine, Route};
use sim::Rng;
use wire::radius::attribute::{CHAP_CHALLENGE, CHAP_PASSWORD, CLASS, USER_NAME, USER_PASSWORD};
use wire::radius::secret::{Signature, reveal_password, signature, verify_request};
use wire::radius::{Packet, Writer, code};

use super::books::Books;

pub(super) const SECRET: &[u8] = b"a secret of the test";

/// How a server handles requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    Dead,
    /// Answers after some seconds, possibly after the request was retransmitted.
    Slow,
    /// Loses half of the requests and half of its own replies.
    Lossy,
    /// Half of its replies have a corrupted byte.
    Corrupt,
    /// Does not know the shared secret, and accepts nothing.
    Stranger,
    /// Sends every reply up to four times, over several seconds.
    Again,
}

impl Mood {
    /// Good and dead servers are the most frequent.
    pub(super) const ALL: [Self; 10] = [
        Self::Good,
        Self::Good,
        Self::Good,
        Self::Dead,
        Self::Dead,
        Self::Slow,
        Self::Lossy,
        Self::Corrupt,
        Self::Stranger,
        Self::Again,
    ];
}

pub(super) fn address(server: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 200 + server as u8], port))
}

pub(super) struct Server {
    pub(super) mood: Mood,
    rng: Rng,
    books: Rc<RefCell<Books>>,
    /// Replies, by the time at which they leave.
    replies: BTreeMap<(Instant, u64), (Route, Vec<u8>)>,
    count: u64,
}

impl Server {
    pub(super) fn new(rng: Rng, books: Rc<RefCell<Books>>) -> Self {
        Self {
            mood: Mood::Good,
            rng,
            books,
            replies: BTreeMap::new(),
            count: 0,
        }
    }

    fn serve(&mut self, route: Route, request: &Packet<'_>, now: Instant) {
        let loses = |server: &mut Self| server.mood == Mood::Lossy && server.rng.chance(0.5);
        if self.mood == Mood::Dead || loses(self) {
            return;
        }
        let knows = self.mood != Mood::Stranger;
        let is_account = request.code() == code::ACCOUNTING_REQUEST;
        let code = match is_account {
            true => {
                assert!(verify_request(request, SECRET));
                if knows {
                    self.books.borrow_mut().received(request);
                }
                code::ACCOUNTING_RESPONSE
            }
            false if lets_in(request) => code::ACCESS_ACCEPT,
            false => code::ACCESS_REJECT,
        };
        let secret = if knows { SECRET } else { b"another secret" };
        let mut reply = Vec::new();
        let authenticator = request.authenticator();
        let mut writer = Writer::new(&mut reply, code, request.identifier(), &authenticator);
        if !is_account {
            writer.message_authenticator();
        }
        if code == code::ACCESS_ACCEPT {
            writer.attribute(CLASS, b"a class");
        }
        writer.finish_signed(secret).expect("it is short");
        let is_damaged = self.mood == Mood::Corrupt && self.rng.chance(0.5);
        if is_damaged {
            let at = self.rng.below(reply.len() as u64) as usize;
            reply[at] ^= 1 << self.rng.below(8);
        }
        if loses(self) {
            return;
        }
        if code == code::ACCESS_ACCEPT && knows && !is_damaged {
            self.books.borrow_mut().accepted(request);
        }
        let copies = if self.mood == Mood::Again {
            1 + self.rng.below(4)
        } else {
            1
        };
        for copy in 0..copies {
            let delay = match (self.mood, copy) {
                (Mood::Slow, _) => Duration::from_millis(500 + self.rng.below(5_000)),
                (_, 0) => Duration::from_millis(1),
                _ => self.rng.up_to(Duration::from_secs(8)),
            };
            self.count += 1;
            let place = (now + delay, self.count);
            self.replies.insert(place, (route, reply.clone()));
        }
    }
}

/// Rejects users whose number ends in 5, and users with a wrong password.
fn lets_in(request: &Packet<'_>) -> bool {
    let authenticator = request.authenticator();
    assert_eq!(signature(request, &authenticator, SECRET), Signature::Right);
    let name = request.find(USER_NAME).expect("it has a name");
    let is_right = match (request.find(CHAP_PASSWORD), request.find(USER_PASSWORD)) {
        (Some(chap), None) => {
            let challenge = request.find(CHAP_CHALLENGE).expect("a challenge");
            let expected = wire::ppp::chap::md5_response(chap.value[0], b"sesame", challenge.value);
            chap.value[1..] == expected
        }
        (None, Some(hidden)) => {
            let password = reveal_password(hidden.value, SECRET, &authenticator);
            password.as_deref() == Some(b"sesame")
        }
        other => panic!("{other:?}"),
    };
    is_right && !name.value.ends_with(b"5")
}

impl Machine for Server {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = core::convert::Infallible;
    type Discard = core::convert::Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Self::Discard> {
        let request = Packet::parse(input.bytes).expect("a request");
        self.serve(input.route, &request, now);
        Ok(())
    }

    fn handle_timeout(&mut self, _: Instant) {
        // Due replies leave with the next transmits.
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let entry = self.replies.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let (route, reply) = entry.remove();
        out.extend_from_slice(&reply);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let (&(at, _), _) = self.replies.first_key_value()?;
        Some((at, "reply"))
    }
}
