//! A server or client whose other side is written by hand.

use base::{Duration, Instant, Machine};
use pppoe::{
    Config, Counters, Discard, EndReason, Endpoint, Event, Frame, Limits, Mac, PortConfig, Route,
    SessionKey, Vlans,
};
use wire::pppoe::{Code, Tags, Writer, parse, tag};

/// An endpoint on port 0, and its time.
pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
}

/// A packet that the endpoint sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) route: Route,
    pub(crate) code: Code,
    pub(crate) session: u16,
    pub(crate) tags: Vec<(u16, Vec<u8>)>,
}

impl Sent {
    /// The value of a tag that must be there once.
    pub(crate) fn one(&self, kind: u16) -> &[u8] {
        let values = self.all(kind);
        assert_eq!(values.len(), 1, "{kind:#06x} of {self:?}");
        values[0]
    }

    pub(crate) fn all(&self, kind: u16) -> Vec<&[u8]> {
        let tags = self.tags.iter().filter(|(found, _)| *found == kind);
        tags.map(|(_, value)| &value[..]).collect()
    }
}

/// No limits on rates, so that tests need no time.
pub(crate) fn limits() -> Limits {
    Limits {
        padis_per_s: 0,
        padis_per_mac_per_s: 0,
        padis_per_vlan_per_s: 0,
        padrs_per_s: 0,
        padrs_per_mac_per_s: 0,
        ..Limits::default()
    }
}

pub(crate) fn config() -> Config {
    Config {
        ac_name: b"edge-1".as_slice().into(),
        limits: limits(),
        ..Config::default()
    }
}

pub(crate) fn names(list: &[&[u8]]) -> Vec<Box<[u8]>> {
    list.iter().map(|name| (*name).into()).collect()
}

pub(crate) const AC: Mac = Mac([0, 0x53, 0, 0, 0xff, 0xac]);

pub(crate) fn mac(n: u32) -> Mac {
    let [a, b, c, d] = n.to_be_bytes();
    Mac([0, 0x53, a, b, c, d])
}

/// The untagged host number `n` at port 0.
pub(crate) fn host(n: u32) -> Route {
    Route {
        port: 0,
        peer: mac(n),
        vlans: Vlans::NONE,
    }
}

pub(crate) fn packet(code: Code, session: u16, tags: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, code, session);
    for (kind, value) in tags {
        writer.tag(*kind, value);
    }
    writer.finish();
    out
}

pub(crate) fn data(session: u16) -> Vec<u8> {
    let mut out = wire::pppoe::header(Code::DATA, session).to_vec();
    out.extend_from_slice(&[0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4]);
    wire::pppoe::complete(&mut out, 0);
    out
}

/// A PADI for any service.
pub(crate) fn padi() -> Vec<u8> {
    packet(Code::PADI, 0, &[(tag::SERVICE_NAME, b"")])
}

pub(crate) fn padr(cookie: &[u8], more: &[(u16, &[u8])]) -> Vec<u8> {
    let own: [(u16, &[u8]); 2] = [(tag::SERVICE_NAME, b""), (tag::AC_COOKIE, cookie)];
    packet(Code::PADR, 0, &[&own, more].concat())
}

impl Bench {
    pub(crate) fn new(config: Config) -> Self {
        Self::with_port(config, PortConfig::default())
    }

    pub(crate) fn with_port(config: Config, port: PortConfig) -> Self {
        let mut endpoint = Endpoint::new(config, [7; 32]);
        endpoint.add_port(0, port);
        Self {
            endpoint,
            now: Instant::ZERO + Duration::from_secs(1_000),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        *self.endpoint.counters()
    }

    pub(crate) fn wait(&mut self, wait: Duration) {
        self.now += wait;
        self.endpoint.handle_timeout(self.now);
    }

    pub(crate) fn send(&mut self, route: Route, bytes: &[u8]) -> Result<(), Discard> {
        let is_broadcast = bytes.get(1) == Some(&Code::PADI.0);
        let frame = Frame {
            route,
            is_broadcast,
            bytes,
        };
        self.endpoint.handle(frame, self.now)
    }

    /// Sends what must be ignored; counts it once and sends nothing.
    pub(crate) fn ignored(&mut self, route: Route, bytes: &[u8], why: Discard) {
        let count = |bench: &Self| {
            let mut rows = bench.endpoint.counters().rows();
            rows.find(|(name, _)| *name == why.name()).unwrap().1
        };
        let (before, sessions) = (count(self), self.endpoint.count());
        assert_eq!(self.send(route, bytes), Err(why));
        assert_eq!(count(self), before + 1);
        assert_eq!(self.endpoint.count(), sessions);
        assert_eq!(self.sent(), []);
    }

    /// Every packet that the endpoint has to send.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(self.now, &mut bytes) {
            let packet = parse(&bytes).expect("it can be read");
            let tags = Tags::new(packet.payload).map(|tag| tag.expect("whole tags"));
            sent.push(Sent {
                route,
                code: packet.code,
                session: packet.session,
                tags: tags.map(|tag| (tag.kind, tag.value.to_vec())).collect(),
            });
            bytes.clear();
        }
        sent
    }

    /// The only packet that the endpoint has to send.
    pub(crate) fn one(&mut self) -> Sent {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// The answer to a packet.
    pub(crate) fn answer(&mut self, route: Route, bytes: &[u8]) -> Sent {
        assert_eq!(self.send(route, bytes), Ok(()));
        self.one()
    }

    /// The cookie that a host gets.
    pub(crate) fn cookie(&mut self, route: Route) -> Vec<u8> {
        self.answer(route, &padi()).one(tag::AC_COOKIE).to_vec()
    }

    /// Opens a session of a host. Time passes, so that its cookie differs from earlier ones.
    pub(crate) fn open(&mut self, route: Route, more: &[(u16, &[u8])]) -> (SessionKey, u16) {
        self.now += Duration::from_millis(1);
        let cookie = self.cookie(route);
        let pads = self.answer(route, &padr(&cookie, more));
        assert_eq!((pads.code, pads.route), (Code::PADS, route));
        assert_ne!(pads.session, 0, "{pads:?}");
        (self.up(), pads.session)
    }

    /// The PADS for a host's request.
    pub(crate) fn request(&mut self, route: Route, more: &[(u16, &[u8])]) -> Sent {
        self.now += Duration::from_millis(1);
        let cookie = self.cookie(route);
        assert_eq!(self.send(route, &padr(&cookie, more)), Ok(()));
        let mut sent = self.sent();
        sent.retain(|sent| sent.code == Code::PADS);
        assert_eq!(sent.len(), 1);
        sent.remove(0)
    }

    pub(crate) fn up(&mut self) -> SessionKey {
        match self.endpoint.poll_event() {
            Some(Event::SessionUp { session }) => session,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn down(&mut self) -> (SessionKey, u16, EndReason) {
        match self.endpoint.poll_event() {
            Some(Event::SessionDown {
                session,
                place,
                reason,
            }) => (session, place.id, reason),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn no_event(&mut self) {
        assert_eq!(self.endpoint.poll_event(), None);
    }
}
