use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use crate::time::Duration;

use super::*;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Phase {
    #[default]
    Opening,
    Up,
    Ending,
}

const PHASES: &[(u8, Phase)] = &[(0, Phase::Opening), (1, Phase::Up), (7, Phase::Ending)];

#[derive(Debug, Clone, Default, PartialEq)]
struct Route {
    length: u8,
    network: Option<IpAddr>,
}

impl Part for Route {
    const NAME: &'static str = "route";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "length", &mut self.length);
        codec.address(2, "network", &mut self.network);
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Session {
    id: u32,
    up: bool,
    phase: Phase,
    name: String,
    cookie: [u8; 4],
    proxy: Option<Vec<u8>>,
    limit: Option<u16>,
    created: Instant,
    end_at: Option<Instant>,
    idle_at: Instant,
    label: Box<[u8]>,
    first: Route,
    other: Option<Route>,
    routes: Vec<Route>,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            id: 0,
            up: false,
            phase: Phase::Opening,
            name: String::new(),
            cookie: [0; 4],
            proxy: None,
            limit: None,
            created: Instant::ZERO,
            end_at: None,
            idle_at: Instant::FAR_FUTURE,
            label: Box::default(),
            first: Route::default(),
            other: None,
            routes: Vec::new(),
        }
    }
}

impl Part for Session {
    const NAME: &'static str = "session";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "id", &mut self.id);
        codec.number(2, "up", &mut self.up);
        codec.choice(3, "phase", &mut self.phase, PHASES);
        codec.text(5, "name", &mut self.name, 40);
        codec.array(6, "cookie", &mut self.cookie);
        codec.maybe_bytes(7, "proxy", &mut self.proxy, 100);
        codec.maybe(8, "limit", &mut self.limit);
        codec.time(9, "created", &mut self.created);
        codec.maybe_time(10, "end_at", &mut self.end_at);
        codec.deadline(11, "idle_at", &mut self.idle_at);
        codec.part(12, "first", &mut self.first);
        codec.maybe_part(13, "other", &mut self.other, Route::default);
        codec.list(14, "routes", &mut self.routes, 3);
        codec.boxed(15, "label", &mut self.label, 5);
    }
}

const TIMELINE: Timeline = Timeline::new(5_000_000_000);

fn written(session: &Session) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), TIMELINE);
    writer.write(&mut session.clone());
    writer.into_octets()
}

fn read(octets: &[u8]) -> Result<Session, ReadError> {
    Reader::read(octets, TIMELINE)
}

fn refused(part: &'static str, fault: Fault) -> Result<Session, ReadError> {
    Err(ReadError { part, fault })
}

fn route() -> impl Strategy<Value = Route> {
    let address = prop_oneof![
        Just(None),
        any::<Ipv4Addr>().prop_map(|address| Some(address.into())),
        any::<Ipv6Addr>().prop_map(|address| Some(address.into())),
    ];
    (any::<u8>(), address).prop_map(|(length, network)| Route { length, network })
}

/// In milliseconds, as it is written.
fn time() -> impl Strategy<Value = Instant> {
    prop_oneof![
        Just(Instant::FAR_FUTURE),
        Just(Instant::ZERO),
        (1_u64..1 << 40).prop_map(|ms| Instant::ZERO + Duration::from_millis(ms)),
    ]
}

prop_compose! {
    fn session()(
        (id, up, phase) in (any::<u32>(), any::<bool>(), 0..3_usize),
        (name, cookie) in (".{0,10}", any::<[u8; 4]>()),
        proxy in prop::option::of(prop::collection::vec(any::<u8>(), 0..100)),
        limit in prop::option::of(any::<u16>()),
        (created, end_at) in (time(), prop::option::of(time())),
        idle_at in time(),
        label in prop::collection::vec(any::<u8>(), 0..5),
        first in route(),
        other in prop::option::of(route()),
        routes in prop::collection::vec(route(), 0..4),
    ) -> Session {
        Session {
            id, up, name, cookie, proxy, limit, created, end_at, first, other, routes,
            phase: PHASES[phase].1,
            idle_at,
            label: label.into(),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(session in session()) {
        let octets = written(&session);
        prop_assert_eq!(read(&octets), Ok(session));
    }

    #[test]
    fn octets_that_are_read_are_those_that_would_be_written(
        session in session(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut octets = written(&session);
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if is_cut {
            octets.truncate(cut.index(octets.len()));
        }
        if let Ok(read) = read(&octets) {
            prop_assert_eq!(written(&read), octets);
        }
    }

    #[test]
    fn nothing_of_an_earlier_value_remains(session in session(), earlier in session()) {
        let octets = written(&session);
        let mut value = Session { first: Route::default(), ..earlier };
        prop_assert_eq!(Reader::new(&octets, TIMELINE).next_into(&mut value), Ok(()));
        prop_assert_eq!(value, session);
    }

    #[test]
    fn a_part_that_is_cut_is_refused(session in session(), cut in any::<prop::sample::Index>()) {
        let octets = written(&session);
        prop_assert!(read(&octets[..cut.index(octets.len())]).is_err());
    }

    #[test]
    fn a_time_is_the_same_moment_for_another_process(
        ms in 20_000_u64..1 << 40, later_ns in 0_i128..10_000_000_000,
    ) {
        let (first, second) = (Timeline::new(later_ns), Timeline::new(later_ns + 7_000_000_000));
        let moment = Instant::ZERO + Duration::from_millis(ms);
        let seen = second.at(first.of(moment));
        prop_assert_eq!(seen + Duration::from_secs(7), moment);
        prop_assert_eq!(second.of(seen), first.of(moment));
    }
}

#[test]
fn a_session_without_anything_is_one_octet() {
    assert_eq!(written(&Session::default()), [0]);
    assert_eq!(read(&[0]), Ok(Session::default()));
}

#[test]
fn the_octets_are_those_of_the_format() {
    let session = Session {
        id: 300,
        up: true,
        phase: Phase::Ending,
        end_at: Some(Instant::FAR_FUTURE),
        routes: vec![
            Route::default(),
            Route {
                length: 24,
                network: None,
            },
        ],
        ..Session::default()
    };
    let octets = [1, 0xac, 0x02, 2, 1, 3, 7, 10, 1, 14, 2, 0, 1, 24, 0, 0];
    assert_eq!(written(&session), octets);
    assert_eq!(read(&octets), Ok(session));
}

#[test]
fn a_field_of_a_newer_program_is_refused_by_its_number() {
    assert_eq!(
        read(&[1, 9, 4, 1, 0]),
        refused("session", Fault::Unknown(4))
    );
    assert_eq!(read(&[99, 1, 0]), refused("session", Fault::Unknown(99)));
    assert_eq!(read(&[12, 9, 1, 0, 0]), refused("route", Fault::Unknown(9)));
}

#[test]
fn other_octets_for_the_same_value_are_refused() {
    for (octets, fault) in [
        (&[1, 0, 0][..], Fault::Value("id")),
        (&[1, 0x81, 0x00, 0], Fault::Value("id")),
        (&[2, 2, 0], Fault::Value("up")),
        (&[3, 0, 0], Fault::Value("phase")),
        (&[3, 2, 0], Fault::Value("phase")),
        (&[5, 0, 0], Fault::Value("name")),
        (&[5, 1, 0xff, 0], Fault::Value("name")),
        (&[6, 0, 0, 0, 0, 0], Fault::Value("cookie")),
        (&[12, 0, 0], Fault::Value("first")),
        (&[14, 0, 0], Fault::Value("routes")),
        (&[14, 4, 0, 0, 0, 0, 0], Fault::Value("routes")),
        (&[2, 1, 1, 1, 0], Fault::Order(1)),
        (&[2, 1], Fault::Short),
        (&[0, 0], Fault::Long),
    ] {
        assert_eq!(read(octets), refused("session", fault), "{octets:?}");
    }
    assert_eq!(
        read(&[12, 2, 3, 1, 2, 3, 0, 0]),
        refused("route", Fault::Value("network"))
    );
}

#[test]
fn a_count_larger_than_its_limit_takes_no_memory() {
    let huge = [
        7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0,
    ];
    assert_eq!(read(&huge), refused("session", Fault::Value("proxy")));
    let longer = [
        1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,
    ];
    assert_eq!(read(&longer), refused("session", Fault::Value("id")));
}

#[test]
fn parts_follow_one_another() {
    let mut writer = Writer::new(Vec::new(), TIMELINE);
    for id in 1..4 {
        writer.write(&mut Route {
            length: id,
            network: None,
        });
    }
    let octets = writer.into_octets();
    let mut reader = Reader::new(&octets, TIMELINE);
    for id in 1..4 {
        let mut route = Route::default();
        assert_eq!(reader.next_into(&mut route), Ok(()));
        assert_eq!(route.length, id);
    }
    assert!(reader.rest().is_empty());
    assert_eq!(
        reader.next_into(&mut Route::default()),
        Err(ReadError {
            part: "route",
            fault: Fault::Short
        })
    );
}

#[test]
fn all_fields_have_their_names() {
    let names = names(&mut Session::default());
    let printed: Vec<String> = (names.iter())
        .map(|name| format!("{}.{}={}", name.part, name.field, name.number))
        .collect();
    assert_eq!(
        printed[..3],
        ["session.id=1", "session.up=2", "session.phase=3"]
    );
    assert_eq!(printed.last().map(String::as_str), Some("session.label=15"));
    assert_eq!(
        printed
            .iter()
            .filter(|name| name.starts_with("route."))
            .count(),
        2
    );
}
