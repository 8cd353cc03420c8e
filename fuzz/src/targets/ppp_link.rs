//! A PPP link on either side, and arbitrary input from its peer.
//!
//! An input is an octet that chooses the link, then steps: an octet of `How`, one octet of length, and that
//! many octets. A step is a frame, time that passes, or an action of the owner. `How` may correct a frame, so
//! that a wrong identifier does not cause a mutated one to be dropped.

use core::net::Ipv4Addr;

use base::{Duration, Instant, Redacted};
use ppp::{
    Authentication, Challenge, Config, Context, Credentials, Event, Grant, Ipv4Offer, Ipv6Offer,
    Link, Outbox, Proxy, Random, Side, State,
};
use wire::ppp::control::{self, Control};
use wire::ppp::{Frame, protocol};

/// The kind of a step, from one octet of the input.
struct How(u8);

enum Step {
    /// The bytes unchanged.
    Raw,
    /// A control packet of a protocol: its code, identifier and data are the octets.
    Packet(u16),
    /// The answer to the latest request of a protocol: the first octet is the code, the data are the request's.
    Answer(u16),
    /// Fires this many of the next timers.
    Wait,
    /// The owner accepts a claim.
    Accept,
    /// The owner answers a claim by EAP with a Request.
    Challenge,
    /// The owner refuses a claim.
    Refuse,
    /// The owner ends the link.
    Close,
}

impl How {
    fn step(&self) -> Step {
        let number = match self.0 >> 4 {
            0 => protocol::PAP,
            1 => protocol::CHAP,
            2 => protocol::EAP,
            3..6 => protocol::IPCP,
            6..9 => protocol::IPV6CP,
            9 => protocol::CCP,
            _ => protocol::LCP,
        };
        match self.0 & 15 {
            0 => Step::Raw,
            1..7 => Step::Packet(number),
            7..11 => Step::Answer(number),
            11 => Step::Wait,
            12 if self.0 >> 4 == 2 => Step::Challenge,
            12 => Step::Wait,
            13 => Step::Accept,
            14 => Step::Refuse,
            _ => Step::Close,
        }
    }
}

/// Takes an input as described above.
///
/// # Panics
/// If the link sends an unreadable frame, answers at greater length or more often than asked, opens a network
/// protocol without authenticating its peer, has a timer in the past, continues after its end, or never ends.
pub fn target(data: &[u8]) {
    let (&choice, mut rest) = data.split_first().unwrap_or((&0, &[]));
    let mut live = Live::new(choice);
    while let [how, length, after @ ..] = rest {
        let (octets, after) = after.split_at(usize::from(*length).min(after.len()));
        live.take(&How(*how), octets);
        rest = after;
    }
    live.finish();
}

/// Numbers that do not repeat for a long time.
pub(super) struct Counting(pub(super) u64);

impl Random for Counting {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *octet = (self.0 >> 56) as u8;
        }
    }
}

struct Live {
    link: Link,
    config: Config,
    out: Outbox,
    random: Counting,
    now: Instant,
    is_network: bool,
    /// The peer has been accepted since LCP was last down.
    accepted: bool,
    ended: bool,
    up: [bool; 2],
    /// The latest Configure-Request of LCP, IPCP and IPv6CP: its identifier and options.
    requests: [(u8, Vec<u8>); 3],
}

const LAYERS: [u16; 3] = [protocol::LCP, protocol::IPCP, protocol::IPV6CP];

/// The magic number from a proxy's negotiation, and one for the peer.
const PROXIED: [u8; 11] = [5, 6, 1, 2, 3, 4, 3, 5, 0xc2, 0x23, 5];

/// The protocols of a network that has MS-CHAP and EAP.
fn newer_ways(choice: u8) -> Vec<Authentication> {
    match choice >> 1 & 3 {
        0 => vec![Authentication::MsChapV2],
        1 => vec![Authentication::Eap],
        2 => vec![Authentication::MsChapV2, Authentication::Pap],
        _ => vec![Authentication::Eap, Authentication::ChapMd5],
    }
}

fn grant() -> Grant {
    Grant {
        ipv4: Some(Ipv4Offer {
            local: Ipv4Addr::new(192, 0, 2, 1),
            peer: Ipv4Addr::new(198, 51, 100, 7),
            dns: [Some(Ipv4Addr::new(192, 0, 2, 53)), None],
            ask_dns: false,
        }),
        ipv6: Some(Ipv6Offer::free(1)),
    }
}

impl Live {
    fn new(choice: u8) -> Self {
        let is_network = choice & 1 == 0;
        let ways = match choice >> 1 & 3 {
            0 => vec![],
            1 => vec![Authentication::Pap],
            2 => vec![Authentication::ChapMd5],
            _ => vec![Authentication::ChapMd5, Authentication::Pap],
        };
        let ways = match is_network && choice & 8 != 0 {
            true => newer_ways(choice),
            false => ways,
        };
        let config = Config {
            authenticate: ways,
            rechallenge_interval: Duration::from_secs(u64::from(choice >> 5 & 1) * 50),
            ..Config::default()
        };
        let side = match is_network {
            true => Side::Network,
            false => Side::Client {
                credentials: (choice & 8 == 0).then(|| Credentials {
                    name: b"alice"[..].into(),
                    secret: Redacted::new(b"sesame"[..].into()),
                }),
                ipv4: Some(Ipv4Offer::ASK),
                ipv6: Some(Ipv6Offer::free(u64::from(choice >> 6))),
            },
        };
        let mut random = Counting(u64::from(choice));
        let mut live = Self {
            link: Link::new(side, &config, &mut random),
            config,
            out: Outbox::new(),
            random,
            now: Instant::from_nanos(1),
            is_network,
            accepted: false,
            ended: false,
            up: [false; 2],
            requests: Default::default(),
        };
        match choice & 16 {
            0 => live.call(0, |link, ctx| link.up(ctx)),
            _ => live.call(0, |link, ctx| {
                let proxy = Proxy {
                    sent: &PROXIED,
                    received: &PROXIED[..6],
                    proof: None,
                };
                link.up_with_proxy(&proxy, ctx);
            }),
        }
        live
    }

    /// Calls the link and checks its output; `length` is the length of the input.
    fn call(&mut self, length: usize, f: impl FnOnce(&mut Link, &mut Context<'_>)) {
        let was_ended = self.ended;
        let mut ctx = Context {
            now: self.now,
            config: &self.config,
            random: &mut self.random,
            out: &mut self.out,
        };
        f(&mut self.link, &mut ctx);
        let mut out = core::mem::take(&mut self.out);
        assert!(!was_ended || out.is_empty(), "it goes on after its end");
        self.hear(length, &out);
        for event in out.take_events() {
            self.heed(&event);
        }
        out.clear();
        self.out = out;
        for (ipv6, &up) in [false, true].into_iter().zip(&self.up) {
            assert_eq!(self.link.is_open(ipv6), up);
        }
        let view = self.link.view();
        assert_eq!(view.lcp, self.link.states()[0]);
        assert_eq!(
            self.ended,
            self.link.timeout() == Instant::FAR_FUTURE && self.ended
        );
    }

    fn hear(&mut self, length: usize, out: &Outbox) {
        let mut octets = 0;
        for frame in out.frames() {
            octets += frame.len();
            let frame = Frame::parse(frame).expect("a frame");
            let packet = Control::parse(frame.information).expect("a control packet");
            let layer = LAYERS.iter().position(|&layer| layer == frame.protocol);
            if let (Some(layer), control::code::CONFIGURE_REQUEST) = (layer, packet.code) {
                self.requests[layer] = (packet.identifier, packet.data.to_vec());
            }
        }
        assert!(octets <= length + 500, "{octets} octets for {length}");
    }

    fn heed(&mut self, event: &Event) {
        assert!(!self.ended, "{event:?} after its end");
        match event {
            Event::LcpUp => self.accepted = false,
            Event::Authenticate(claim) => {
                assert!(self.is_network && claim.name.len() < 256);
            }
            Event::Authenticated => assert!(!self.is_network),
            Event::Ipv4Up(settings) => {
                assert!(!self.up[0] && (self.accepted || !self.is_network));
                if self.is_network {
                    assert_eq!(settings.peer, Ipv4Addr::new(198, 51, 100, 7));
                    assert_eq!(settings.local, Ipv4Addr::new(192, 0, 2, 1));
                } else {
                    assert!(!settings.local.is_unspecified());
                }
                self.up[0] = true;
            }
            Event::Ipv4Down => assert!(core::mem::take(&mut self.up[0])),
            Event::Ipv6Up(settings) => {
                assert!(!self.up[1] && (self.accepted || !self.is_network));
                assert_ne!(settings.local, settings.peer);
                self.up[1] = true;
            }
            Event::Ipv6Down => assert!(core::mem::take(&mut self.up[1])),
            Event::Ended(reason) => {
                assert_eq!(self.link.view().end, Some(*reason));
                self.ended = true;
            }
        }
    }

    fn take(&mut self, how: &How, octets: &[u8]) {
        match how.step() {
            Step::Raw => self.send(octets),
            Step::Packet(number) => {
                let Some((&[code, identifier], data)) = octets.split_first_chunk() else {
                    return;
                };
                self.send(&packet(number, code, identifier, data));
            }
            Step::Answer(number) => {
                let layer = LAYERS.iter().position(|&layer| layer == number);
                let Some((layer, &code)) = layer.zip(octets.first()) else {
                    return;
                };
                let (identifier, options) = self.requests[layer].clone();
                let data = match octets.len() {
                    1 => &options,
                    _ => &octets[1..],
                };
                self.send(&packet(number, 2 + code % 3, identifier, data));
            }
            Step::Wait => {
                for _ in 0..=octets.first().map_or(0, |count| count % 4) {
                    self.wait();
                }
            }
            Step::Accept => {
                // The rest of the call concerns an accepted peer.
                let was_let_in = core::mem::replace(&mut self.accepted, true);
                let mut let_in = false;
                self.call(0, |link, ctx| let_in = link.accept(&grant(), b"hello", ctx));
                self.accepted = let_in || was_let_in;
            }
            Step::Challenge => self.call(octets.len(), |link, ctx| {
                let challenge = Challenge {
                    request: octets,
                    state: b"state",
                    interval: octets.first().map(|&one| Duration::from_secs(one.into())),
                };
                link.challenge(challenge, ctx);
            }),
            Step::Refuse => self.call(0, |link, ctx| {
                link.refuse(b"no", ctx);
            }),
            Step::Close => self.call(0, |link, ctx| link.close(ctx)),
        }
    }

    fn send(&mut self, octets: &[u8]) {
        let before = self.link.states();
        self.call(octets.len(), |link, ctx| {
            if let Err(reason) = link.handle(octets, ctx) {
                assert!(!reason.name().is_empty());
            }
        });
        let is_packet = matches!(
            Frame::parse(octets).map(|frame| frame.protocol),
            Ok(protocol::IPV4 | protocol::IPV6)
        );
        assert!(!is_packet || before == self.link.states());
    }

    fn wait(&mut self) {
        let due = self.link.timeout();
        if due == Instant::FAR_FUTURE {
            return;
        }
        assert!(due >= self.now, "a timer in the past");
        self.now = due;
        self.call(0, |link, ctx| link.handle_timeout(ctx));
        assert!(self.link.timeout() > due, "what was due is done");
    }

    /// With a silent peer, the link ends, or has nothing to wait for.
    fn finish(&mut self) {
        for _ in 0..200 {
            self.wait();
        }
        let states = self.link.states();
        assert!(self.ended, "{states:?}");
        assert_eq!(self.up, [false; 2]);
        assert!(states[0] != State::Opened);
        assert_eq!(self.link.timeout(), Instant::FAR_FUTURE);
    }
}

fn packet(number: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let mut octets = number.to_be_bytes().to_vec();
    control::emit(&mut octets, code, identifier, |out| {
        out.extend_from_slice(data);
    });
    octets
}
