//! Frames into an endpoint with live sessions: an access concentrator with two hosts, or a host with two access
//! concentrators. A bystander has a session as well, and no frame is sent for it.
//!
//! An input is frames, each an octet of `How`, two octets of length, and that many octets. Cookie, Host-Uniq and
//! SESSION_ID of a frame may be corrected, so that a mutated frame is not ignored for these.

use std::collections::HashSet;

use base::{Duration, Instant, Machine};
use pppoe::{
    Config, DelayStep, Dial, Endpoint, Event, Frame, Limits, Mac, Phase, PortConfig, Role, Route,
    SessionKey, Vlans,
};
use wire::pppoe::{Code, Discovery, Tag, Tags, Writer, parse, tag};

/// Small, so that an input can reach them.
const LIMITS: Limits = Limits {
    sessions_max: 6,
    sessions_per_mac_max: 2,
    sessions_per_line_max: 3,
    half_open_max: 3,
    padrs_per_s: 20,
    padrs_per_mac_per_s: 8,
    padis_per_s: 20,
    padis_per_mac_per_s: 8,
    padis_per_vlan_per_s: 16,
    pados_delayed_max: 2,
};

const BYSTANDER: u8 = 9;

/// How to send a frame, from one octet of the input.
struct How(u8);

impl How {
    /// Its sender: one of two stations, the first one in another VLAN, or one that is no station.
    fn route(&self) -> Route {
        let (peer, vlans) = match self.0 & 3 {
            0 => (station(1), Vlans::NONE),
            1 => (station(2), Vlans::NONE),
            2 => (station(1), Vlans::one(7)),
            _ => (Mac::BROADCAST, Vlans::NONE),
        };
        Route {
            port: 0,
            peer,
            vlans,
        }
    }

    /// Whether what the sender could know is corrected.
    fn is_corrected(&self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether it is sent to the broadcast address.
    fn is_broadcast(&self) -> bool {
        self.0 & 8 != 0
    }

    /// Whether the owner then ends a session, or dials.
    fn is_command(&self) -> bool {
        self.0 & 16 != 0
    }

    /// The time that passes before it.
    fn pause(&self) -> Duration {
        let steps = [0, 0, 0, 10, 500, 2_000, 10_000, 40_000];
        Duration::from_millis(steps[usize::from(self.0 >> 5)])
    }
}

const fn station(n: u8) -> Mac {
    Mac([0, 0x53, 0, 0, 0, n])
}

/// An access concentrator.
///
/// # Panics
/// If the endpoint sends a packet that cannot be read, is too long or goes elsewhere, a table exceeds its limit or
/// contradicts another, an ignored frame changes a session, the bystander is affected, or anything is left after a
/// shutdown.
pub fn target_server(data: &[u8]) {
    run(Role::Server, data);
}

/// A host.
///
/// # Panics
/// As [`target_server`].
pub fn target_client(data: &[u8]) {
    run(Role::Client, data);
}

fn run(role: Role, data: &[u8]) {
    let mut live = Live::new(role);
    let mut rest = data;
    while let Some((how, bytes)) = next_frame(&mut rest) {
        live.take(&how, bytes);
    }
    live.finish();
}

fn next_frame<'a>(rest: &mut &'a [u8]) -> Option<(How, &'a [u8])> {
    let (&how, after) = rest.split_first()?;
    let (&length, after) = after.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(length)).min(after.len());
    let (bytes, after) = after.split_at(length);
    *rest = after;
    Some((How(how), bytes))
}

struct Live {
    role: Role,
    endpoint: Endpoint,
    now: Instant,
    /// What the stations could know: of the newest packet to any of them.
    cookie: Vec<u8>,
    uniq: Vec<u8>,
    id: u16,
    up: HashSet<SessionKey>,
    bystander: SessionKey,
    dials: u64,
}

impl Live {
    fn new(role: Role) -> Self {
        let config = Config {
            limits: LIMITS,
            services: vec![b"gold".as_slice().into()],
            max_payload: 1508,
            pado_delay: vec![DelayStep {
                from_sessions: 4,
                delay: Some(Duration::from_millis(100)),
            }],
            ..Config::default()
        };
        let mut endpoint = Endpoint::new(config, [7; 32]);
        let port = PortConfig {
            mtu: 1516,
            server: role == Role::Server,
            ..PortConfig::default()
        };
        endpoint.add_port(0, port);
        let mut live = Self {
            role,
            now: Instant::ZERO + Duration::from_secs(10),
            cookie: Vec::new(),
            uniq: Vec::new(),
            id: 1,
            up: HashSet::new(),
            bystander: bystander(&mut endpoint, role),
            dials: 0,
            endpoint,
        };
        live.drain();
        if role == Role::Client {
            live.dial();
        }
        live
    }

    fn dial(&mut self) {
        let dial = Dial {
            service_name: b"gold".as_slice().into(),
            ..Dial::default()
        };
        let key = self.endpoint.dial(0, Vlans::NONE, dial, self.now);
        self.dials += u64::from(key.is_ok());
        self.drain();
    }

    /// Takes a frame, and checks that one that is ignored changed nothing.
    fn take(&mut self, how: &How, bytes: &[u8]) {
        self.now += how.pause();
        self.endpoint.handle_timeout(self.now);
        self.drain();
        let corrected = self.corrected(how, bytes);
        let bytes = corrected.as_deref().unwrap_or(bytes);
        let before = self.endpoint.count();
        let frame = Frame {
            route: how.route(),
            is_broadcast: how.is_broadcast(),
            bytes,
        };
        let found = self.endpoint.receive_data(&frame.route, bytes, self.now);
        let is_ignored = match found {
            Ok(Some((session, ppp))) => {
                assert!(self.up.contains(&session), "frames flow in sessions only");
                assert!(ppp.len() <= bytes.len());
                true
            }
            Ok(None) => self.endpoint.handle(frame, self.now).is_err(),
            Err(_) => true,
        };
        if is_ignored {
            assert_eq!(self.endpoint.count(), before);
            assert_eq!(self.endpoint.poll_event(), None);
        }
        self.drain();
        if how.is_command() {
            self.command(how);
        }
        self.check();
    }

    fn command(&mut self, how: &How) {
        if self.role == Role::Client {
            return self.dial();
        }
        let sessions = self.endpoint.sessions().map(|view| view.key);
        let key = sessions.filter(|key| *key != self.bystander).last();
        if let Some(key) = key {
            self.endpoint.end(key, how.pause(), self.now);
            self.drain();
        }
    }

    /// The frame with what its sender could know.
    fn corrected(&self, how: &How, bytes: &[u8]) -> Option<Vec<u8>> {
        let packet = parse(bytes).ok().filter(|_| how.is_corrected())?;
        let session = match packet.code {
            Code::DATA | Code::PADT => self.id,
            _ => packet.session,
        };
        let mut out = Vec::new();
        if packet.code == Code::DATA {
            out.extend_from_slice(&wire::pppoe::header(packet.code, session));
            out.extend_from_slice(packet.payload);
            wire::pppoe::complete(&mut out, 0);
            return Some(out);
        }
        let mut writer = Writer::new(&mut out, packet.code, session);
        for tag in Tags::new(packet.payload) {
            let Tag { kind, value } = tag.ok()?;
            let value = match (kind, self.role) {
                (tag::AC_COOKIE, Role::Server) => &self.cookie,
                (tag::HOST_UNIQ, Role::Client) => &self.uniq,
                _ => value,
            };
            writer.tag(kind, value);
        }
        writer.finish();
        Some(out)
    }

    /// Takes everything that the endpoint has, as its owner would.
    fn drain(&mut self) {
        let mut bytes = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(self.now, &mut bytes) {
            self.sent(route, &bytes);
            bytes.clear();
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::SessionUp { session } => assert!(self.up.insert(session)),
                Event::SessionDown {
                    session, reason, ..
                } => {
                    self.up.remove(&session);
                    assert!(self.endpoint.session(session).is_none());
                    assert!(!reason.to_string().contains(char::is_control));
                }
            }
        }
    }

    fn sent(&mut self, route: Route, bytes: &[u8]) {
        let packet = parse(bytes).expect("the endpoint's packets can be read");
        assert!(bytes.len() <= 1_500);
        let tags = Discovery::parse(packet.payload).expect("and their tags");
        let is_known = route.peer.is_unicast() && route.peer != station(BYSTANDER);
        match packet.code {
            Code::PADI => assert_eq!(route.peer, Mac::BROADCAST),
            _ => assert!(is_known, "{route}"),
        }
        if let (Code::PADO, Some(cookie)) = (packet.code, tags.ac_cookie) {
            self.cookie = cookie.to_vec();
        }
        if let (Code::PADI | Code::PADR, Some(uniq)) = (packet.code, tags.host_uniq) {
            self.uniq = uniq.to_vec();
        }
        if packet.code == Code::PADS && packet.session != 0 {
            self.id = packet.session;
        }
    }

    fn check(&self) {
        let endpoint = &self.endpoint;
        assert!(endpoint.count() <= LIMITS.sessions_max as usize);
        assert!(endpoint.half_open() <= LIMITS.half_open_max);
        let (mut half_open, mut ids) = (0, HashSet::new());
        for view in endpoint.sessions() {
            half_open += u32::from(view.phase == Phase::HalfOpen);
            assert_eq!(self.up.contains(&view.key), view.phase.carries_data());
            assert_eq!(
                endpoint.header(view.key).is_some(),
                view.phase.carries_data()
            );
            if view.phase.carries_data() {
                assert!(ids.insert((view.route.peer, view.id)));
                assert_eq!(endpoint.find(0, view.route.peer, view.id), Some(view.key));
                assert!((500..=1508).contains(&view.max_payload));
            }
        }
        assert_eq!(endpoint.half_open(), half_open);
        let counters = endpoint.counters();
        let made = match self.role {
            Role::Server => counters.sessions_up,
            Role::Client => self.dials + 1,
        };
        assert_eq!(made - counters.sessions_down, endpoint.count() as u64);
        assert!(endpoint.session(self.bystander).is_some());
    }

    fn finish(mut self) {
        self.endpoint.shut_down(self.now);
        self.endpoint.handle_timeout(self.now);
        let mut bytes = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut bytes).is_some() {}
        assert_eq!(self.endpoint.count(), 0);
        assert!(self.endpoint.is_quiet());
        assert_eq!(self.endpoint.poll_timeout(), None);
        self.now += Duration::from_secs(1_000);
        self.endpoint.handle_timeout(self.now);
        assert!(self.endpoint.poll_transmit(self.now, &mut bytes).is_none());
    }
}

/// Sets up the bystander's session.
fn bystander(endpoint: &mut Endpoint, role: Role) -> SessionKey {
    let now = Instant::ZERO;
    let route = Route {
        port: 0,
        peer: station(BYSTANDER),
        vlans: Vlans::NONE,
    };
    let mut out = Vec::new();
    let mut exchange = |endpoint: &mut Endpoint, code, session, tags: &[(u16, &[u8])]| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, code, session);
        for (kind, value) in tags {
            writer.tag(*kind, value);
        }
        writer.finish();
        let frame = Frame {
            route,
            is_broadcast: code == Code::PADI,
            bytes: &bytes,
        };
        endpoint.handle(frame, now).expect("nothing is ignored");
        out.clear();
        endpoint.poll_transmit(now, &mut out);
        out.clone()
    };
    let value = |packet: &[u8], of: fn(&Discovery<'_>) -> Option<Vec<u8>>| {
        let packet = parse(packet).expect("whole");
        of(&Discovery::parse(packet.payload).expect("whole")).expect("the tag")
    };
    let service: (u16, &[u8]) = (tag::SERVICE_NAME, b"");
    if role == Role::Server {
        let pado = exchange(endpoint, Code::PADI, 0, &[service]);
        let cookie = value(&pado, |tags| tags.ac_cookie.map(<[u8]>::to_vec));
        exchange(
            endpoint,
            Code::PADR,
            0,
            &[service, (tag::AC_COOKIE, &cookie)],
        );
    } else {
        let dial = Dial::default();
        endpoint.dial(0, Vlans::NONE, dial, now).expect("room");
        let mut padi = Vec::new();
        endpoint.poll_transmit(now, &mut padi).expect("a PADI");
        let uniq = value(&padi, |tags| tags.host_uniq.map(<[u8]>::to_vec));
        let uniq: (u16, &[u8]) = (tag::HOST_UNIQ, &uniq);
        exchange(
            endpoint,
            Code::PADO,
            0,
            &[service, uniq, (tag::AC_NAME, b"ac")],
        );
        exchange(endpoint, Code::PADS, 77, &[service, uniq]);
    }
    let key = endpoint.sessions().next().expect("the session").key;
    endpoint.heard(key, now);
    key
}
